"""A part of the tour: how far the newest result can be trusted."""

from __future__ import annotations

from functools import partial

from app.tools.trust.model import TITLES
from app.tour.user_input import TourError, choose_action, click, wait
from app.tour.visit import Step, Visit

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


STEPS = tuple(Step(f"trust-{kind}", partial(asked, kind=kind)) for kind in TITLES)
