"""A part of the tour: a few slices as a volume, coupled, seen in three directions."""

from __future__ import annotations

from app.tour.user_input import TourError, choose, choose_action, click, wait, write
from app.tour.visit import Step, Visit

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


STEPS = (Step("volume", computed), Step("volume-cuts", looked_at))
