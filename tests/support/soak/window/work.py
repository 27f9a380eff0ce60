"""What a person does all day: opens, runs, looks, exports, saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from PySide6.QtWidgets import QApplication

from app.export.dialog import ExportDialog
from app.images.window_level import PRESETS
from app.runs.store import RunEntry
from app.tour.user_input import choose, click, rest, wait
from soak.tally import Mark
from soak.window.session import HU, MR, Session

DIALOGS: Final = ("help", "log", "about", "shortcuts", "open", "save workspace", "spectra")
EXPORTED: Final = ("numpy", "nifti", "dicom", "png")


def open_data(session: Session, mark: Mark, folder: Path) -> None:
    inputs, side = session.inputs, session.random.choice((32, 48, 64))
    offers: tuple[tuple[Path | str, dict[str, Any] | None], ...] = (
        (inputs / f"ct-{side}.npy", HU),
        (inputs / f"mr-{side}.npy", MR),
        (inputs / "slices.npy", HU),
        (inputs / "series", None),
        (f"demo:ct:{session.random.randrange(5)}", None),
    )
    session.open(*session.random.choice(offers))
    if words := session.said():
        mark.unexpected(f"said while opening: {words}")
    if session.window.setup.data is not None and session.window.setup.data.image_size[0] > 64:
        session.open(inputs / "ct-64.npy", HU)  # demos are seen, not reconstructed: too slow here


def run(session: Session, mark: Mark, folder: Path) -> None:
    session.finish(session.start(session.random.choice((4, 8, 12))))


def press_buttons(session: Session, mark: Mark, folder: Path) -> None:
    """Pause, step and end a run at random moments."""
    window, random = session.window, session.random
    runs = session.start(60)
    for _ in range(random.randrange(1, 6)):
        rest(random.randrange(5, 250))
        button = window.run_bar.buttons[random.choice(("pause", "pause", "step"))]
        if button.isEnabled():
            button.click()
    rest(random.randrange(5, 250))
    last = random.choice(("finish", "cancel"))
    if window.runs.busy:
        mark.fault()
        window.run_bar.buttons[last].click()
    session.finish(runs)
    for entry in runs:
        if len(entry.history) and entry.images is None:
            mark.lost(f"{entry.name} was ended by {last} and has no image")


def look(session: Session, mark: Mark, folder: Path) -> None:
    """Slices, windows, planes, comparisons and past iterations."""
    window, random = session.window, session.random
    bar, scrubber = window.center.bar, window.center.scrubber
    session.finished_run()
    for _ in range(10):
        match random.randrange(7):
            case 0:
                window.grid.link.step_slice(random.choice((-1, 1)))
            case 1 if bar.window_box.isEnabled():
                bar.window_box.activated.emit(random.randrange(len(PRESETS)))
            case 2:
                random.choice(list(bar.plane_actions.values())).trigger()
            case 3:
                random.choice(list(bar.modes.values())).click()
            case 4:
                slider = scrubber.slider
                slider.setValue(random.randint(slider.minimum(), slider.maximum()))
            case 5:
                random.choice((scrubber.back, scrubber.forth, scrubber.liveButton)).click()
            case _:
                names = ("bars", "invert", "fit", "rotate", "flip", "mask", "plots", "undo")
                window.menus.actions[random.choice(names)].trigger()
        rest(random.randrange(5, 60))


def dialogs(session: Session, mark: Mark, folder: Path) -> None:
    session.window.menus.actions[session.random.choice(DIALOGS)].trigger()
    rest(100)


def theme(session: Session, mark: Mark, folder: Path) -> None:
    for name in session.random.sample(("theme dark", "theme light"), 2):
        session.window.menus.actions[name].trigger()
        rest(50)


# -- files ----------------------------------------------------------------------------------


def export(session: Session, mark: Mark, folder: Path) -> None:
    """What was written is read back and compared with what is on the screen."""
    entry = session.finished_run()
    keys = session.random.sample(EXPORTED, session.random.randrange(1, len(EXPORTED) + 1))
    if session.data_gone(entry):
        keys = ["numpy", "png"]  # the others need the headers of the data
    dialog = export_dialog(session, entry, folder, keys)
    wait(dialog.export.isEnabled, "the export is offered")
    click(dialog.export)
    wait(lambda: not dialog.presenter.exporting, "the export ends")
    from soak.readback import fault_of

    assert entry.images is not None
    for path in dialog.presenter.plan.files:
        if fault := fault_of(path, entry.images):
            mark.lost(f"the export differs from the screen: {fault}. {session.said()}")


def export_dialog(session: Session, entry: RunEntry, folder: Path, keys: list[str]) -> ExportDialog:
    """The dialog, filled in; it still looks into the folder."""
    window = session.window
    window.show_run(entry.run_id)
    window.files.export()
    dialog = window.files.dialog
    assert dialog is not None
    dialog.formats.tick(keys)
    dialog.formats.changed.emit()
    for line, text in ((dialog.base, "soak"), (dialog.folder, str(folder))):
        line.setText(text)
        line.textEdited.emit(text)
    return dialog


def workspace(session: Session, mark: Mark, folder: Path) -> None:
    """Saved and opened again: the same runs with the same images."""
    session.finished_run()
    window, path = session.window, folder / "study.dualscope"
    before = {entry.number: entry.images for entry in window.store if entry.record_path}
    window.messages.queue.clear()
    window.workspaces.save(path)
    if "was saved" not in session.wait_said():
        mark.lost(f"the workspace was not saved: {session.said()}")
        return
    saved = session.said()
    window.messages.queue.clear()
    old = {id(entry) for entry in window.store}
    window.workspaces.open(path)
    wait(
        lambda: session.said() or (len(window.store) and not old & {id(e) for e in window.store}),
        "the workspace opens",
    )
    after = {entry.number: entry.images for entry in window.store}
    if after.keys() != before.keys():
        mark.lost(
            f"runs {sorted(before)} were saved, {sorted(after)} came back. {saved} {session.said()}"
        )
    for number in before.keys() & after.keys():
        saw, sees = before[number], after[number]
        same = saw is sees is None or (
            saw is not None and sees is not None and np.array_equal(saw, sees)
        )
        if not same:
            mark.lost(f"run {number} came back with other bits")
    session.forget(list(window.store))  # their files go with the folder


def experiment(session: Session, mark: Mark, folder: Path) -> None:
    """A quick trial on the open data; now and then cancelled."""
    window, random = session.window, session.random
    session.open(session.inputs / "ct-32.npy", HU)
    window.menus.actions["experiments"].trigger()
    view = window.experiments.view
    assert view is not None
    panel = view.panel
    wait(lambda: panel.offers.experiments, "the experiments are listed")
    panel.choose("ablation")
    choose(panel.inputs, "The open data")
    panel.prior.chosen.emit("tv")
    panel.quick.setChecked(True)
    panel.folder.setText(str(folder / "experiment"))
    click(view.start)
    if random.random() < 0.5:
        rest(random.randrange(10, 2000))
        mark.fault()
        view.presenter.cancel()
    wait(lambda: not window.experiments.busy, "the experiment ends")
    QApplication.processEvents()
    if view.status.text().startswith("⚠"):
        mark.unexpected(view.status.text())
