"""The middle of the window: messages, tools, images, curves, scrubber."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app.images.grid import PaneGrid
from app.plots.panel import PlotPanel
from app.runs.presenter import RunPresenter
from app.runs.scrubber import Scrubber
from app.runs.store import RunStore
from app.viewbar import ViewBar

PLOT_PX = 184


class Center(QWidget):
    def __init__(
        self, store: RunStore, runs: RunPresenter, messages: QWidget, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName("Images and curves")
        self.grid = PaneGrid()
        self.bar = ViewBar(self.grid)
        self.plots = PlotPanel(store, runs)
        self.scrubber = Scrubber(store, runs)
        self.split = QSplitter(Qt.Orientation.Vertical)
        self.split.setChildrenCollapsible(False)
        self.split.addWidget(self.grid)
        self.split.addWidget(self.plots)
        self.split.setStretchFactor(0, 1)
        self.split.setStretchFactor(1, 0)
        self.split.setSizes([640, PLOT_PX])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(messages)
        column.addWidget(self.bar)
        column.addWidget(self.split, 1)
        column.addWidget(self.scrubber)
        self.plots.folded_changed.connect(self._on_folded)

    def _on_folded(self, folded: bool) -> None:
        """A folded panel keeps only its head; its old height comes back with it."""
        head = self.plots.header.sizeHint().height()
        self.plots.setMaximumHeight(head if folded else 16777215)
        if not folded:
            whole = sum(self.split.sizes())
            self.split.setSizes([whole - PLOT_PX, PLOT_PX])
