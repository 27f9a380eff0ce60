"""Parts of the tour: MRI, how far the newest result can be trusted, a few slices as a volume."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt

from app.images.display import Tool
from app.tools.trust.model import TITLES
from app.tour.user_input import TourError, choose, choose_action, click, drag, press, wait, write
from app.tour.visit import Step, Visit


def opened(visit: Visit) -> None:
    visit.window.messages.dismissButton.click()
    choose_action(visit.window.menus.actions["demo mri"])
    wait(lambda: visit.window.left.modality == "MR", "the MRI demo opens")
    visit.settle()
    visit.show_left("data")


def acquisition(visit: Visit) -> None:
    visit.choose_preset("MRI 6x")
    visit.set_nfe(visit.nfe)
    visit.show_left("acquisition")


def running(visit: Visit) -> None:
    visit.show_left("solver")
    visit.wait_for_half(visit.start(visit.window.left.solver.both))


def finished(visit: Visit) -> None:
    visit.wait_for_end()


def difference(visit: Visit) -> None:
    run = visit.newest("dc-pnpdp")
    press(visit.window.grid.pane(run.run_id), Qt.Key.Key_D)
    choose(visit.window.center.bar.a, run.name)


def measured(visit: Visit) -> None:
    bar, view = visit.window.center.bar, visit.pane_of(visit.newest("dc-pnpdp"))
    click(bar.tools[Tool.RECTANGLE])
    drag(view, (0.40, 0.40), (0.50, 0.50))
    click(bar.tools[Tool.RULER])
    drag(view, (0.2, 0.55), (0.8, 0.55))
    wait(lambda: visit.window.right.profile.isVisible(), "the profile appears")


def planes(visit: Visit) -> None:
    window = visit.window
    choose_action(window.menus.actions["clear"])
    choose_action(window.menus.actions["none"])
    for action in window.center.bar.plane_actions.values():
        choose_action(action)
    visit.start(window.left.solver.run)
    visit.wait_for_end()


MRI = (
    Step("mri-opened", opened),
    Step("mri-acquisition", acquisition),
    Step("mri-running", running),
    Step("mri-finished", finished),
    Step("mri-difference", difference),
    Step("mri-measured", measured),
    Step("mri-planes", planes),
)


FIRST, LAST = 28, 33  # of the demonstration's 60 slices
SIDE = 64


def computed(visit: Visit) -> None:
    visit.close_dialogs()
    window, volumes = visit.window, visit.window.volumes
    before = window.setup.data
    window.data.open("demo:ct-volume", {"size": SIDE})
    wait(lambda: window.setup.data is not before, "the series opens")
    visit.settle()
    visit.set_nfe(visit.nfe)
    choose_action(window.menus.actions["volume"])
    view = volumes.view
    if view is None:
        raise TourError("the page did not open")
    choose(view.panel.slices.box, "a range")
    view.panel.slices.first.setValue(FIRST)
    view.panel.slices.last.setValue(LAST)
    if not view.panel.couple.isChecked():
        click(view.panel.couple)
    write(view.panel.folder, str(visit.folder / "volume"))
    click(view.start)
    wait(lambda: not volumes.busy, "the volume ends")
    if not view.status.text().startswith("Done"):
        raise TourError(view.status.text())


def looked_at(visit: Visit) -> None:
    volumes = visit.window.volumes
    if volumes.view is None:
        raise TourError("there is no volume")
    click(volumes.view.look)
    volumes.view.close()
    looking = volumes.browser
    wait(
        lambda: looking.view is not None and looking.view.panes.panes[0].image is not None,
        "the cuts appear",
    )


VOLUME = (Step("volume", computed), Step("volume-cuts", looked_at))


SEEDS = 3


def asked(visit: Visit, kind: str) -> None:
    visit.close_dialogs()
    visit.window.show_run(visit.newest("dc-pnpdp").run_id)
    choose_action(visit.window.menus.actions["trust"])
    view = visit.window.trust.view
    if view is None:
        raise TourError("the page did not open")
    view.choose(kind)
    view.seeds.setValue(SEEDS)
    click(view.compute)
    wait(lambda: not visit.window.trust.busy, "the question is answered")
    wait(lambda: view.pages[kind].reading.text(), "it is explained")
    if view.pages[kind].answer is None:
        raise TourError(view.status.text())


TRUST = tuple(Step(f"trust-{kind}", partial(asked, kind=kind)) for kind in TITLES)
