"""The four plots of a run: does it fit the data, does it agree, is its noise white, is it good."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QStackedLayout, QToolButton, QWidget

from app.plots.curves import CurvePlot
from app.plots.drawing import (
    Legend,
    draw_gap,
    draw_psnr,
    draw_residual,
    draw_spectra,
    is_level,
    run_of,
)
from app.plots.psd_image import PsdWindow
from app.runs.presenter import RunPresenter
from app.runs.store import RunEntry, RunStore
from app.widgets import EmptyState, in_column, in_row

NO_REFERENCE: Final = "No reference image:\nPSNR needs one."
NO_RUN: Final = "Curves appear here when a run starts."
TURN_MS: Final = 16  # four plots: each is drawn about 15 times a second


class PlotPanel(QWidget):
    """Follows the store: every visible run in its own colour and dashes; folds away.

    ``wanted_changed`` says what the frames must hold for these plots, nothing when folded.
    """

    wanted_changed = Signal(set)
    folded_changed = Signal(bool)
    thin_changed = Signal(bool)

    def __init__(
        self, store: RunStore, presenter: RunPresenter, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.store, self.presenter = store, presenter
        # whether a run is of the open data: curves of others would mean nothing beside it
        self.belongs: Callable[[RunEntry], bool] = lambda entry: True
        self.thin = False
        self._old_spectra = False
        self._frames_due: dict[str, Any] = {}
        self._turn = 0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(TURN_MS)
        self._timer.timeout.connect(self._on_turn)
        self.residual = CurvePlot("‖Ax − y‖", "iteration k")
        self.gap = CurvePlot("‖x − z‖,  ‖u‖ dotted", "iteration k")
        self.psd = CurvePlot("Noise power", "cycles/pixel", log_x=True, x_step=0.25)
        self.psnr = CurvePlot("PSNR  dB", "denoiser calls", log_y=False, y_step=5.0)
        self.residual.setToolTip(
            "Distance between the measurement and what the image x would measure, in the prior's "
            "units: falling means that the data are fitted better."
        )
        self.gap.setToolTip(
            "Distance between the data-consistent image x and the denoised z, and (dotted) the "
            "size of the dual u that has to close it, both in the prior's units."
        )
        self.psnr.setToolTip("Closeness to the reference image in decibel: higher is closer.")
        self.psd.setToolTip(
            "Power of the denoiser's input noise: solid after homogenization, dotted before; "
            "green is the white level it should have, shaded what was missing."
        )
        self.plots = (self.residual, self.gap, self.psd, self.psnr)
        self._draw_curve = {
            self.residual: draw_residual,
            self.gap: draw_gap,
            self.psnr: draw_psnr,
        }
        self._due: dict[CurvePlot, set[str]] = {plot: set() for plot in self._draw_curve}
        self._resets: set[CurvePlot] = set()
        self.legend = Legend(self)
        self.foldButton = QToolButton(self)
        self.foldButton.setCheckable(True)
        self.foldButton.setArrowType(Qt.ArrowType.DownArrow)
        self.foldButton.setText("Curves")
        self.foldButton.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.foldButton.setAutoRaise(True)
        self.foldButton.setAccessibleName("Fold the curves away")
        self.foldButton.setToolTip("Hide or show the curves; without them the images are larger.")
        self.foldButton.toggled.connect(self.set_folded)
        self.spectraButton = QToolButton(self)
        self.spectraButton.setText("2-D spectra")
        self.spectraButton.setCheckable(True)
        self.spectraButton.setProperty("switch", True)
        self.spectraButton.setAccessibleName("Show two-dimensional spectra")
        self.spectraButton.setToolTip(
            "Show the noise power as pictures: dark is where the measurement left too little."
        )
        self.spectraButton.toggled.connect(self._on_spectra)

        self.header = QWidget(self)
        in_row(
            self.foldButton,
            (self.legend, 1),
            self.spectraButton,
            spacing=8,
            margins=0,
            parent=self.header,
        )
        self.body = QWidget(self)
        self.nothing = EmptyState(NO_RUN)
        drawn = QWidget()
        self._pages = QStackedLayout(self.body)
        self._pages.addWidget(self.nothing)
        self._pages.addWidget(drawn)
        row = in_row(spacing=0, margins=0, parent=drawn)
        for plot in self.plots:
            row.addWidget(plot, 1)
        in_column(self.header, (self.body, 1), spacing=0, margins=0, parent=self)

        store.added.connect(self._on_added)
        store.updated.connect(self._on_updated)
        store.removed.connect(self._on_removed)
        store.grown.connect(self._on_grown)
        presenter.started.connect(self._on_started)
        presenter.frame.connect(self._on_frame)
        for entry in store:
            self._draw(entry)
        self._draw_legend()

    @property
    def folded(self) -> bool:
        return self.foldButton.isChecked()

    @property
    def wanted(self) -> set[str]:
        """Names for RunPresenter.show, to be joined with those of the panes."""
        if self.folded:
            return set()
        return {"psd", "psd image"} if self.spectraButton.isChecked() else {"psd"}

    @cached_property
    def spectra(self) -> PsdWindow:
        """Made when it is first asked for: most sessions never do."""
        made = PsdWindow(self)
        made.finished.connect(lambda: self.spectraButton.setChecked(False))
        return made

    def closeEvent(self, event: QCloseEvent) -> None:
        self.spectraButton.setChecked(False)
        super().closeEvent(event)

    @Slot(bool)
    def set_folded(self, folded: bool) -> None:
        if folded == self.body.isHidden():
            return
        self.foldButton.setChecked(folded)
        self.foldButton.setArrowType(Qt.ArrowType.RightArrow if folded else Qt.ArrowType.DownArrow)
        self.body.setVisible(not folded)
        self.spectraButton.setVisible(not folded)
        if not folded:
            self.redraw()
        self.folded_changed.emit(folded)
        self.wanted_changed.emit(self.wanted)

    def set_thin(self, thin: bool) -> None:
        """A strip below large images: the curves with no more than they need to be read."""
        self.thin = thin
        for plot in self.plots:
            plot.set_thin(thin)
        self.thin_changed.emit(thin)

    @Slot()
    def redraw(self) -> None:
        """Everything again, with ranges that fit what is shown."""
        for plot in self.plots:
            plot.clear_curves()
        self._resets.update(self.plots)
        for entry in self.store:
            if entry.last_frame is not None:
                self._frames_due[entry.run_id] = entry.last_frame
            self._draw(entry)
        self._draw_legend()

    @Slot(bool)
    def _on_spectra(self, shown: bool) -> None:
        """With the pictures of the newest run that has some."""
        for entry in self.store if shown else ():
            if entry.last_frame is not None and entry.last_frame.psd_images:
                self.spectra.images.show_frame(entry.name, entry.last_frame)
        self.spectra.setVisible(shown)
        self.wanted_changed.emit(self.wanted)

    @Slot(str)
    def _on_added(self, run_id: str) -> None:
        if (entry := self.store.get(run_id)) is not None:
            if entry.last_frame is not None:  # of a run that comes back
                self._frames_due[run_id] = entry.last_frame
            self._draw(entry)
        self._draw_legend()

    @Slot(str)
    def _on_updated(self, run_id: str) -> None:
        entry = self.store.get(run_id)
        if entry is None or self.folded:
            return
        if self._shown(entry):
            self._draw(entry)
        else:
            self._erase(run_id)
        self._draw_legend()

    @Slot(str)
    def _on_removed(self, run_id: str) -> None:
        self._erase(run_id)
        self._draw_legend()

    @Slot(list)
    def _on_grown(self, run_ids: list[str]) -> None:
        for due in self._due.values():
            due.update(run_ids)
        self._wake()

    @Slot(str, object)
    def _on_frame(self, run_id: str, frame: Any) -> None:
        self._frames_due[run_id] = frame
        self._wake()

    def _wake(self) -> None:
        if not self._timer.isActive():  # a restart would put the turn off again and again
            self._timer.start()

    @Slot()
    def _on_turn(self) -> None:
        """One plot at a time, so that no turn of the event loop takes long."""
        self._turn = (self._turn + 1) % len(self.plots)
        self._draw_plot(self.plots[self._turn])
        if self._frames_due or self._resets or any(self._due.values()):
            self._timer.start()

    @Slot()
    def flush(self) -> None:
        """Draw at once all that waits for its turn."""
        for plot in self.plots:
            self._draw_plot(plot)

    def _draw_plot(self, plot: CurvePlot) -> None:
        if plot in self._resets:
            self._resets.remove(plot)
            plot.reset()
        if plot is self.psd:
            frames, self._frames_due = self._frames_due, {}
            for run_id, frame in frames.items():
                if entry := self._visible(run_id):
                    self._draw_frame(entry, frame)
            return
        due, self._due[plot] = self._due[plot], set()
        draw, right = self._draw_curve[plot], plot.right
        shown = [entry for entry in self.store if self._visible(entry.run_id)]
        shown = [entry for entry in shown if len(entry.history)]
        for entry in shown:
            if entry.run_id in due:
                draw(plot, entry)
        if plot.right != right:  # a longer run: the levels go all the way, too
            for entry in filter(is_level, shown):
                draw(plot, entry)

    def _visible(self, run_id: str) -> RunEntry | None:
        entry = self.store.get(run_id)
        return entry if entry and self._shown(entry) and not self.folded else None

    def _shown(self, entry: RunEntry) -> bool:
        return entry.visible and self.belongs(entry)

    def _draw_frame(self, entry: RunEntry, frame: Any) -> None:
        if frame.psd_images and self.spectraButton.isChecked():
            self.spectra.images.show_frame(entry.name, frame)
        if not frame.psd or frame.frequency is None:
            return
        if self._old_spectra:
            self._old_spectra = False
            self.psd.clear_curves()
            self.psd.reset()
        draw_spectra(self.psd, entry, frame)

    @Slot(object)
    def _on_started(self, started: Any) -> None:
        """A new run: the ranges fit what is shown; old spectra go when the first new one comes."""
        self._old_spectra = not any(entry.running and len(entry.history) for entry in self.store)
        self._resets.update(self.plots)
        self._wake()
        self.psnr.set_empty_text(NO_REFERENCE if started.reference is None else "")

    def _draw(self, entry: RunEntry) -> None:
        """Soon, each plot in its turn: all at once would hold up the images."""
        for due in self._due.values():
            due.add(entry.run_id)
        self._wake()

    def _erase(self, run_id: str) -> None:
        for plot in self.plots:
            for key in [k for k in plot.names if run_of(k) == run_id]:
                plot.remove(key)
        if not any("/" in key for key in self.psd.names):
            self.psd.remove("ideal")

    def _draw_legend(self) -> None:
        lines = [
            (entry.name, entry.colour, entry.dash)
            for entry in self.store
            if self._shown(entry) and (entry.running or len(entry.history))
        ]
        self._pages.setCurrentIndex(1 if lines else 0)
        self.legend.show_lines(lines)
