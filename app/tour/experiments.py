"""The last part of the tour: an experiment of the paper, as a quick trial."""

from __future__ import annotations

from app.tour.hand import TourError, choose, choose_action, click, wait, write
from app.tour.visit import Step, Visit

NAME = "injection"  # the shortest one that has both curves and pictures


def finished(visit: Visit) -> None:
    visit.close_dialogs()
    experiments = visit.window.experiments
    choose_action(visit.window.menus.actions["experiments"])
    view = experiments.view
    if view is None:
        raise TourError("the page did not open")
    panel = view.panel
    wait(lambda: panel.offers.experiments, "the experiments are listed")
    panel.choose(NAME)
    choose(panel.prior.combo, "tv")
    panel.prior.combo.activated.emit(panel.prior.combo.currentIndex())
    click(panel.quick)
    write(panel.folder, str(visit.folder / "experiments"))
    click(view.start)
    wait(lambda: not experiments.busy, "the experiment ends")
    if not view.figures.pictures:
        raise TourError(view.status.text())


STEPS = (Step("experiments", finished),)
