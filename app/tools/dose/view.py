"""The window of the dose explorer: images at every dose, and how quality falls with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QRect, Qt, Signal, Slot
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QWidget

from app.background import Ended, JobPresenter
from app.export.controller import save_picture
from app.images.display import LinkedView
from app.images.grid import PaneGrid
from app.images.window_level import WindowBox
from app.plots.curves import CurvePlot
from app.runs.colours import style_of
from app.session.jobs import job_lines
from app.tasks import Tasks
from app.theme import SMALLEST_TEXT_PX, run_style, tabular
from app.tools.dose.model import CurrentScan, DoseRequest, Sweep
from app.tools.dose.panel import DosePanel, Times
from app.tools.table_window import TableWindow
from app.widgets import in_column, in_row
from engine.spec.marks import RESEARCH

if TYPE_CHECKING:
    from app.tools.dose.job import Tile
    from engine.data.dataset import Placement

PLOTS_PX: Final = 232
TABLE_PX: Final = 520
TRUTH: Final = "truth"
NO_TRUTH: Final = "These data have no reference, so there are no figures: judge by eye."
DIRECT: Final = {"CT": ("FBP", "fbp"), "MR": ("zero-filled", "zero-filled")}


class DoseWindow(TableWindow):
    """Zoom and window are those of all images at once: every tile is the same crop."""

    TITLE = "Dose explorer"
    THING = "sweep"
    CASES = "doses"
    EMPTY = "Every dose becomes a row here."
    START_TIP = "Compute one image for every value."
    CANCEL_TIP = "Stop after this iteration; the images that are there stay."
    TABLE_TIP = "Double-click a row, or press Enter, to open its image as a run."
    READING = "Reading the data …"
    CANCELLED = "Cancelled: the images that are there stay."
    SIZE = (1400, 860)

    run_wanted = Signal(object)  # Tile
    picture_wanted = Signal()
    failed = Signal(str, str)

    panel: DosePanel

    def __init__(
        self,
        presenter: JobPresenter,
        now: Callable[[], CurrentScan],
        times: Times,
        tasks: Tasks,
        parent: QWidget | None = None,
    ) -> None:
        self._now, self._times, self.tasks = now, times, tasks
        self.tiles: list[Tile] = []
        self.asked = DoseRequest("")
        super().__init__(presenter, parent)
        self.table.activated.connect(self._open_selected)
        self.table.selectionModel().selectionChanged.connect(self._refresh)

    def make_panel(self) -> DosePanel:
        return DosePanel(self._now, self._times)

    def beside_table(self) -> QWidget:
        self.link = LinkedView(self)
        self.grid = PaneGrid(self.link)
        self.grid.set_empty_words("The images appear here, all of the same crop.")
        self.window_box = WindowBox(self.link.window_model, self.grid.image)
        self.plots = {
            "psnr": CurvePlot("PSNR  dB", "dose", log_y=False, y_step=5.0),
            "ssim": CurvePlot("SSIM", "dose", log_y=False, y_step=0.1),
        }
        self.curves = QWidget()
        row = QHBoxLayout(self.curves)
        row.setContentsMargins(0, 0, 0, 0)
        for plot in self.plots.values():
            row.addWidget(plot)
        below = QWidget()
        line = in_row(spacing=8, margins=0, parent=below)
        self.pages.setMaximumWidth(TABLE_PX)
        line.addWidget(self.pages, 1)
        line.addWidget(self.curves, 1)
        images = QWidget()
        column = in_column(spacing=4, margins=0, parent=images)
        top = in_row(self.window_box, None)
        column.addLayout(top)
        column.addWidget(self.grid, 1)
        split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.addWidget(images)
        split.addWidget(below)
        split.setStretchFactor(0, 1)
        split.setSizes([560, PLOTS_PX])
        self.as_run = QPushButton("Open as a run")
        self.as_run.setAccessibleName("Open as a run")
        self.as_run.clicked.connect(self._open_selected)
        self.picture = QPushButton("Save picture…")
        self.picture.setAccessibleName("Save picture")
        self.picture.clicked.connect(self.picture_wanted)
        return split

    def buttons(self) -> list[QPushButton]:
        self.open_folder.setParent(self)  # no files are written
        self.open_folder.hide()
        return [self.as_run, self.picture, self.cancel, self.start]

    # -- what comes -------------------------------------------------------------------------

    def begin(self, asked: DoseRequest, shown: LinkedView, placement: Placement | None) -> None:
        """Another sweep; its crop and window are those that ``shown`` has now."""
        self.asked, self.tiles, self._placement = asked, [], placement
        self.grid.clear()
        self._axes(asked.sweep)
        self.link.set_source(1, shown.spacing_known)
        self.link.set_orientation(shown.state.orientation)
        self.link.window_model.set(shown.window_model.window)
        self._crop = (shown.state.zoom, shown.state.centre)

    def _axes(self, sweep: Sweep) -> None:
        """New plots, for an axis is logarithmic or not from its beginning."""
        row = self.curves.layout()
        assert row is not None
        for name, old in list(self.plots.items()):
            new = CurvePlot(
                old.title,
                sweep.label,
                log_x=sweep.log,
                log_y=False,
                x_step=1.0 if sweep.log else 10.0,
                y_step=5.0 if name == "psnr" else 0.1,
                legend=name == "psnr",
            )
            if new.legend is not None:
                new.legend.setOffset((-8, -8))  # curves rise: below them is room
            row.replaceWidget(old, new)
            old.hide()
            old.deleteLater()
            self.plots[name] = new

    def add(self, tile: Tile) -> None:
        """The image at one more dose."""
        if not self.tiles and tile.reference is not None:
            truth = self.grid.add(TRUTH, "Reference", run_style("reference"))
            truth.set_placement(self._placement)
            truth.set_image(tile.reference[0], tile.pixel_mm or (1.0, 1.0), tile.modality)
        self.tiles.append(tile)
        name = f"{tile.label}, {tile.words}"
        pane = self.grid.add(f"{tile.value:g}", name, style_of(tile.job))
        pane.set_image(tile.images[0], tile.pixel_mm or (1.0, 1.0), tile.modality)
        pane.set_placement(self._placement)
        pane.set_caption(name, tile.metrics.get("psnr"), tile.metrics.get("ssim"), tile.verdicts)
        pane.set_run_lines(*job_lines(tile.job, tile.label, tile.modality))
        if len(self.tiles) == 1:
            zoom, centre = self._crop
            self.link.set_zoom(zoom)
            self.link.set_centre(centre)
        self._draw(tile)
        self._refresh()

    def _draw(self, newest: Tile) -> None:
        dose = np.array([tile.value for tile in self.tiles])
        style, (words, method) = style_of(newest.job), DIRECT[newest.modality]
        direct = run_style(method)
        for name, plot in self.plots.items():
            ours, theirs = (
                np.array([found.get(name, np.nan) for found in figures])
                for figures in (
                    [tile.metrics for tile in self.tiles],
                    [tile.direct for tile in self.tiles],
                )
            )
            if np.isfinite(ours).any():
                plot.set_curve("ours", newest.label, style.colour, style.dash, dose, ours)
                plot.set_curve("direct", words, direct.colour, direct.dash, dose, theirs)
            else:
                plot.set_empty_text(NO_TRUTH)

    # -- what goes --------------------------------------------------------------------------

    def selected(self) -> Tile | None:
        """Of the row that is chosen in the table."""
        rows = self.table.selectionModel().selectedRows() if self.model.rowCount() else []
        words = self.model.table.rows[rows[0].row()][0] if rows else ""
        return next((tile for tile in self.tiles if tile.words == words), None)

    @Slot()
    def _open_selected(self) -> None:
        if (tile := self.selected()) is not None and self.as_run.isEnabled():
            self.run_wanted.emit(tile)

    def montage(self) -> QImage:
        """All images with their marks, the curves below, and what it is above."""
        pictures = [pane.picture() for pane in self.grid.image_panes()]
        captions = [pane.caption.whole for pane in self.grid.image_panes()]
        width = min(picture.width() for picture in pictures)
        pictures = [
            picture.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
            for picture in pictures
        ]
        curves = self.curves.grab().toImage()
        columns = min(4, len(pictures))
        line = max(2 * SMALLEST_TEXT_PX, width // 24)
        high = max(picture.height() for picture in pictures) + line
        rows = -(-len(pictures) // columns)
        across = columns * width
        wide = curves.scaledToWidth(
            min(across, 2 * curves.width()), Qt.TransformationMode.SmoothTransformation
        )
        result = QImage(across, 2 * line + rows * high + wide.height(), QImage.Format.Format_RGB32)
        result.fill(QColor("black"))
        painter = QPainter(result)
        font = tabular(self.font())
        font.setPixelSize(round(0.6 * line))
        painter.setFont(font)
        painter.setPen(QColor("white"))
        middle = Qt.AlignmentFlag.AlignCenter
        for at, words in enumerate((self.title(), f"{RESEARCH}. Dualscope")):
            painter.drawText(QRect(0, at * line, across, line), middle, words)
        for number, (picture, words) in enumerate(zip(pictures, captions, strict=True)):
            x, y = number % columns * width, 2 * line + number // columns * high
            painter.drawImage(x, y, picture)
            painter.drawText(QRect(x, y + picture.height(), width, line), middle, words)
        painter.drawImage((across - wide.width()) // 2, 2 * line + rows * high, wide)
        painter.end()
        result.setText("Comment", RESEARCH)
        result.setText("Title", self.title())
        return result

    def title(self) -> str:
        label = self.tiles[0].label if self.tiles else ""
        slices = ", ".join(str(number + 1) for number in self.tiles[0].slices)
        return f"{label}: {self.asked.sweep.label}, slice {slices}"

    def save_picture(self, path: Path) -> None:
        def saved(where: Any) -> None:
            self._say(f"{path.name} was written.")

        save_picture(self.montage(), path, self.tasks, saved, self.failed.emit)

    # -- inside -----------------------------------------------------------------------------

    def conclude(self, ended: Ended) -> None:
        self.panel.refresh()  # how long it takes is known better now

    @Slot()
    def _refresh(self) -> None:
        super()._refresh()
        busy = self.presenter.busy
        chosen = self.selected() is not None
        self.as_run.setEnabled(chosen)
        self.as_run.setToolTip(
            "Put it into the list of runs of the main window, with its curves."
            if chosen
            else "Choose a row of the table first."
        )
        self.picture.setEnabled(bool(self.tiles) and not busy)
        self.picture.setToolTip(
            "All images with their marks and the curves, as a PNG."
            if self.tiles
            else "There is no image yet."
        )
