"""One walk through the window: steps in their order, a picture after each."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from app.runs.store import RunEntry
from app.session.panes import REFERENCE
from app.tour.user_input import (
    TourError,
    bring_into_sight,
    choose,
    choose_action,
    click,
    rest,
    wait,
    write,
)
from app.window import MainWindow

TITLE_PX: Final = 28
EDGE_PX: Final = 8
LAYOUT_MS: Final = 30  # of a dialog that was made smaller
SETTLE_MS: Final = 150  # for layouts and for plots that wait for their turn
KINDS: Final = (Qt.WindowType.Dialog, Qt.WindowType.Window)


class Camera:
    def __init__(self, window: QWidget, folder: Path, size: QSize) -> None:
        self.window, self.folder, self.size = window, folder, size
        self.taken: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)

    def shoot(self, name: str) -> Path:
        """Other windows are drawn in the middle."""
        self.window.resize(self.size)
        rest(SETTLE_MS)
        picture = self.window.grab()
        for dialog in self.dialogs():
            self._draw(picture, dialog)
        path = self.folder / f"{len(self.taken) + 1:02d}-{name}.png"
        if not picture.save(str(path)):
            raise TourError(f"{path} could not be written")
        self.taken.append(path)
        seen = picture.deviceIndependentSize().toSize()
        if seen != self.size:
            found = f"{seen.width()}x{seen.height()}"
            raise TourError(f"the window does not get smaller than {found}")
        return path

    def dialogs(self) -> list[QWidget]:
        """The windows before the main one."""
        return [
            widget
            for widget in QApplication.topLevelWidgets()
            if widget is not self.window and widget.isVisible() and widget.windowType() in KINDS
        ]

    def _draw(self, picture: QPixmap, dialog: QWidget) -> None:
        """With a plain title, since the frame is the desktop's and not in the picture."""
        whole = picture.deviceIndependentSize().toSize()
        room = QSize(whole.width() - 2 * EDGE_PX, whole.height() - TITLE_PX - 2 * EDGE_PX)
        dialog.resize(dialog.size().boundedTo(room))
        rest(LAYOUT_MS)
        content, inside = dialog.grab(), dialog.size()
        corner = QPoint(
            (whole.width() - inside.width()) // 2,
            (whole.height() - inside.height() + TITLE_PX) // 2,
        )
        palette = dialog.palette()
        title = QRect(corner.x(), corner.y() - TITLE_PX, inside.width(), TITLE_PX)
        painter = QPainter(picture)
        painter.fillRect(title, palette.color(QPalette.ColorRole.Button))
        painter.setPen(palette.color(QPalette.ColorRole.ButtonText))
        painter.drawText(title, Qt.AlignmentFlag.AlignCenter, dialog.windowTitle())
        painter.drawPixmap(corner, content)
        painter.setPen(palette.color(QPalette.ColorRole.Mid))
        painter.drawRect(title.united(QRect(corner, inside)).adjusted(-1, -1, 0, 0))
        painter.end()


Say = Callable[[str], None]
IDLE: Final = "idle"


@dataclass
class Visit:
    """What the steps share.

    Parameters
    ----------
    folder : for files that the tour makes to open them
    export : where the reconstruction is exported to
    nfe : denoiser calls of a run
    """

    window: MainWindow
    camera: Camera
    folder: Path
    export: Path
    nfe: int

    # -- what several steps do ----------------------------------------------------------------

    def settle(self) -> None:
        """The data are on the screen and nothing is being read or simulated."""
        window = self.window
        grid = window.grid
        wait(
            lambda: REFERENCE in grid and grid.pane(REFERENCE).image is not None,
            "the data appear",
        )
        wait(lambda: not window.tasks.busy, "reading ends")

    def choose_preset(self, name: str) -> None:
        choose(self.window.left.solver.presets.combo, name)

    def set_nfe(self, nfe: int) -> None:
        form = self.window.left.solver.form
        if form is None:
            raise TourError("there is no method yet")
        write(form.rows["nfe"].editor.control, str(nfe))

    def start(self, button: QWidget) -> list[RunEntry]:
        """Press Run or Run both; the new runs."""
        before = {entry.run_id for entry in self.window.store}
        click(button)
        return [entry for entry in self.window.store if entry.run_id not in before]

    def wait_for_half(self, runs: Sequence[RunEntry]) -> None:
        iterative = [run for run in runs if "nfe" in run.job["settings"]]
        half = min(int(run.job["settings"]["nfe"]) for run in iterative) // 2
        wait(lambda: all((run.nfe or 0) >= half for run in iterative), "the runs get half way")

    def wait_for_end(self) -> None:
        wait(lambda: self.window.runs.state == IDLE, "the runs end")
        failed = [run.message for run in self.window.store if run.status == "failed"]
        if failed:
            raise TourError(failed[0])

    def newest(self, solver: str) -> RunEntry:
        found = [run for run in self.window.store if run.solver == solver]
        if not found:
            raise TourError(f"there is no run of {solver}")
        return found[-1]

    def pane_of(self, run: RunEntry) -> QWidget:
        """What takes the mouse over a run's image."""
        return self.window.grid.pane(run.run_id).view.viewport()

    def unfold(self, part: str) -> None:
        """A small window opens with the right column folded."""
        action = self.window.menus.actions[part]
        if not action.isChecked():
            choose_action(action)

    def show_left(self, section: str) -> None:
        bring_into_sight(self.window.left.sections[section])

    def close_dialogs(self) -> None:
        for dialog in self.camera.dialogs():
            dialog.close()


@dataclass(frozen=True)
class Step:
    name: str
    act: Callable[[Visit], None]


def walk(visit: Visit, steps: Sequence[Step], say: Say) -> bool:
    """Whether all went well; the steps after one that failed have nothing to build on."""
    for step in steps:
        try:
            step.act(visit)
            say(str(visit.camera.shoot(step.name)))
        except Exception as error:
            trouble = str(error) if isinstance(error, TourError) else traceback.format_exc()
            say(f"Step '{step.name}' failed: {trouble}")
            return False
    return True


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
