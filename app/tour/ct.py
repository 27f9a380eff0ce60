"""The CT part of the tour: from an empty window to files that were exported."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from app.data.choice_dialog import ChoiceDialog
from app.images.display import Tool
from app.images.pane import ImagePane
from app.runs.table_model import NOTE, RUN
from app.tour.user_input import (
    NO_KEYS,
    TourError,
    choose,
    choose_action,
    click,
    drag,
    drop,
    press,
    wait,
    write,
)
from app.tour.visit import Step, Visit

FORMATS = ("dicom", "png", "numpy")
VIEWS = 90  # of the sinogram that is opened without a geometry


def empty(visit: Visit) -> None:
    solver = visit.window.left.solver
    wait(lambda: solver.model.choices is not None, "the engine loads")


def welcome(visit: Visit) -> None:
    choose_action(visit.window.menus.actions["tour"])
    click(visit.window.tour.bubble.nextButton)


def opened(visit: Visit) -> None:
    click(visit.window.tour.bubble.skipButton)
    click(visit.window.browser.ctDemo)
    visit.settle()
    strip = visit.window.left.ct.strip
    wait(lambda: strip.sinogram is not None, "the sinogram appears")


def limited_angle(visit: Visit) -> None:
    visit.choose_preset("LACT-90")
    _wait_for_views(visit, 90)
    visit.show_left("acquisition")


def running(visit: Visit) -> None:
    visit.choose_preset("SVCT-20")
    visit.set_nfe(visit.nfe)
    _wait_for_views(visit, 20)
    visit.show_left("solver")
    visit.wait_for_half(visit.start(visit.window.left.solver.both))


def finished(visit: Visit) -> None:
    visit.wait_for_end()


def reading(visit: Visit) -> None:
    choose_action(visit.window.menus.actions["layout reading"])


def comparing(visit: Visit) -> None:
    choose_action(visit.window.menus.actions["layout compare"])


def difference(visit: Visit) -> None:
    choose_action(visit.window.menus.actions["layout research"])
    press(_own_pane(visit), Qt.Key.Key_D)
    choose(visit.window.center.bar.a, visit.newest("dc-pnpdp").name)


def swipe(visit: Visit) -> None:
    press(_own_pane(visit), Qt.Key.Key_S)
    pane = visit.window.grid.compare_pane
    if pane is None:
        raise TourError("the swipe did not open")
    drag(pane.view.viewport(), (0.5, 0.5), (0.6, 0.5))


def measured(visit: Visit) -> None:
    press(_own_pane(visit), Qt.Key.Key_Escape)
    visit.unfold("right")
    tools, view = visit.window.center.bar.tools, visit.pane_of(visit.newest("dc-pnpdp"))
    click(tools[Tool.ELLIPSE])
    drag(view, (0.52, 0.40), (0.62, 0.52))
    click(tools[Tool.RULER])
    drag(view, (0.25, 0.62), (0.75, 0.62))
    right = visit.window.right
    wait(lambda: right.profile.isVisible(), "the profile appears")
    wait(lambda: right.statistics.table.rowCount(), "the statistics appear")


def spectra(visit: Visit) -> None:
    """Planes and pictures of the spectra are made along with a run, so they come before it."""
    window = visit.window
    choose_action(window.menus.actions["clear"])
    click(window.center.bar.tools[Tool.WINDOW])
    for action in window.center.bar.plane_actions.values():
        choose_action(action)
    click(window.center.plots.spectraButton)
    visit.set_nfe(visit.nfe - 1)
    visit.wait_for_half(visit.start(window.left.solver.run))


def planes(visit: Visit) -> None:
    visit.wait_for_end()
    visit.window.center.plots.spectra.close()


def scrubbed(visit: Visit) -> None:
    center = visit.window.center
    for action in center.bar.plane_actions.values():
        choose_action(action)
    press(center.scrubber.slider, Qt.Key.Key_Home)
    click(center.scrubber.forth)


def runs(visit: Visit) -> None:
    click(visit.window.center.scrubber.liveButton)
    _note(visit, 0, "one call fewer")
    _note(visit, 1, "same seed")
    _select(visit, 0)


def settings_diff(visit: Visit) -> None:
    _select(visit, 0)
    _select(visit, 2, Qt.KeyboardModifier.ControlModifier)
    click(visit.window.right.table.compareButton)


def export(visit: Visit) -> None:
    visit.close_dialogs()
    _select(visit, 0)
    choose_action(visit.window.menus.actions["export"])
    dialog = visit.window.files.dialog
    if dialog is None:
        raise TourError("the export dialog did not open")
    visit.export.mkdir(parents=True, exist_ok=True)
    for key, box in dialog.formats.boxes.items():
        if box.isChecked() != (key in FORMATS):
            click(box)
    write(dialog.folder, str(visit.export))
    ready, known = dialog.export.isEnabled, dialog.replace.isEnabled
    wait(lambda: ready() or known(), "the folder is looked at")
    if known():  # files of an earlier tour
        click(dialog.replace)
    wait(ready, "the export can begin")


def exported(visit: Visit) -> None:
    dialog = visit.window.files.dialog
    if dialog is None:
        raise TourError("the export dialog is gone")
    click(dialog.export)
    wait(lambda: not dialog.presenter.exporting and dialog.open_folder.isVisible(), "files appear")


def kind_asked(visit: Visit) -> None:
    """A sinogram without a word about what it is or how it was measured."""
    visit.close_dialogs()
    panel = visit.window.left.ct
    write(panel.form.rows["views"].editor.control, str(VIEWS))
    _wait_for_views(visit, VIEWS)
    path = visit.folder / "sinogram.npy"
    assert panel.strip.sinogram is not None
    np.save(path, panel.strip.sinogram)
    drop(visit.window, path)
    wait(visit.camera.dialogs, "what the file holds is asked for")


def geometry_asked(visit: Visit) -> None:
    (dialog,) = visit.camera.dialogs()
    if not isinstance(dialog, ChoiceDialog):
        raise TourError("the window asks for something else")
    answers = [choice.options.get("kind") for choice in dialog.choices]
    click(dialog.group.button(answers.index("sinogram")))
    click(dialog.ok)
    flow = visit.window.geometry_asker
    wait(lambda: flow.dialog is not None, "the geometry is asked for")


def geometry_given(visit: Visit) -> None:
    dialog, data = visit.window.geometry_asker.dialog, visit.window.setup.data
    if dialog is None or data is None or data.pixel_mm is None:
        raise TourError("there is no question about the geometry")
    rows = dialog.form.rows
    choose(rows["scan_geometry"].editor.control, "parallel")
    write(rows["scan_range"].editor.control, "180")
    write(rows["scan_pitch_mm"].editor.control, f"{data.pixel_mm[1]:g}")
    wait(lambda: dialog.proposals.count() > 1, "the data's own geometry is proposed")


def help_page(visit: Visit) -> None:
    visit.close_dialogs()
    choose_action(visit.window.menus.actions["reading"])


def log(visit: Visit) -> None:
    visit.close_dialogs()
    choose_action(visit.window.menus.actions["log"])


def error(visit: Visit) -> None:
    visit.close_dialogs()
    path = visit.folder / "broken.dcm"
    path.write_bytes(b"this is no image at all" * 20)
    drop(visit.window, path)
    wait(lambda: visit.window.messages.isVisible(), "the error is told")


STEPS = (
    Step("ct-empty", empty),
    Step("ct-welcome", welcome),
    Step("ct-opened", opened),
    Step("ct-limited-angle", limited_angle),
    Step("ct-running", running),
    Step("ct-finished", finished),
    Step("ct-reading", reading),
    Step("ct-compare", comparing),
    Step("ct-difference", difference),
    Step("ct-swipe", swipe),
    Step("ct-measured", measured),
    Step("ct-spectra", spectra),
    Step("ct-planes", planes),
    Step("ct-scrubbed", scrubbed),
    Step("ct-runs", runs),
    Step("ct-settings-diff", settings_diff),
    Step("ct-export", export),
    Step("ct-exported", exported),
    Step("ct-kind-asked", kind_asked),
    Step("ct-geometry-asked", geometry_asked),
    Step("ct-geometry-given", geometry_given),
    Step("ct-help", help_page),
    Step("ct-log", log),
    Step("ct-error", error),
)


def _wait_for_views(visit: Visit, views: int) -> None:
    strip = visit.window.left.ct.strip
    wait(
        lambda: strip.sinogram is not None and len(strip.sinogram) == views,
        f"the sinogram has {views} views",
    )


def _own_pane(visit: Visit) -> ImagePane:
    return visit.window.grid.pane(visit.newest("dc-pnpdp").run_id)


def _cell(visit: Visit, row: int, column: int) -> QPoint:
    view = visit.window.right.table.table
    view.scrollTo(view.model().index(row, column))
    return view.visualRect(view.model().index(row, column)).center()


def _select(visit: Visit, row: int, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    table = visit.window.right.table.table
    click(table.viewport(), _cell(visit, row, RUN + 1), keys)


def _note(visit: Visit, row: int, words: str) -> None:
    table = visit.window.right.table.table
    at = _cell(visit, row, NOTE)
    click(table.viewport(), at)
    QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, at)
    lines = _editors(visit)
    if not lines:
        raise TourError("the note cannot be edited")
    write(lines[-1], words)
    press(lines[-1], Qt.Key.Key_Return)
    wait(lambda: not _editors(visit), "the note is taken")


def _editors(visit: Visit) -> list[QLineEdit]:
    lines = visit.window.right.table.table.findChildren(QLineEdit)
    return [line for line in lines if line.isVisible()]
