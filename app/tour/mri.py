"""The MRI part of the tour."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.images.display import Tool
from app.tour.user_input import choose, choose_action, click, drag, press, wait
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


STEPS = (
    Step("mri-opened", opened),
    Step("mri-acquisition", acquisition),
    Step("mri-running", running),
    Step("mri-finished", finished),
    Step("mri-difference", difference),
    Step("mri-measured", measured),
    Step("mri-planes", planes),
)
