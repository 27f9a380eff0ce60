"""Parts of the tour: how far the newest result can be trusted, and a few slices as a volume."""

from __future__ import annotations

from functools import partial

from app.tools.trust.model import TITLES
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
