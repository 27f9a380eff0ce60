"""Three linked cuts: one voxel, one window, and each pane's own zoom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.images.display import LinkedView
from app.images.window import WindowModel
from app.volume.cut_pane import CutPane, DifferenceCut
from app.volume.source import DIFFERENCE
from app.volume.space import Cut, Voxel

MISSING: Final = "There is no volume to show."


class CutPanes(QWidget):
    """Says which voxel is wanted, and shows the cuts that it is given."""

    moved = Signal()  # the crosshair is in another voxel

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.window_model = WindowModel(parent=self)
        self.links = [LinkedView(self) for _ in range(3)]
        for link in self.links:
            link.window_model = self.window_model
        self.panes = [CutPane(link) for link in self.links]
        self.differences = [DifferenceCut(link) for link in self.links]
        for one in self.differences:
            for other in self.differences:
                one.window_model.changed.connect(other.window_model.set)
        self.stacks = [QStackedWidget() for _ in range(3)]
        for stack, pane, difference in zip(self.stacks, self.panes, self.differences, strict=True):
            stack.addWidget(pane)
            stack.addWidget(difference)
            for either in (pane, difference):
                either.set_empty_text(MISSING)
                either.maximise_requested.connect(lambda of=stack: self.maximise(of))
        self.cuts: tuple[Cut, ...] = ()
        self.shape: tuple[int, int, int] = (1, 1, 1)
        self.voxel: Voxel = (0, 0, 0)
        self._alone: QStackedWidget | None = None
        self._moving = False
        self._build()
        for axis, link in enumerate(self.links):
            link.slice_changed.connect(lambda number, of=axis: self._on_slice(of, number))
            link.crosshair_changed.connect(lambda of=axis: self._on_crosshair(of))

    def _build(self) -> None:
        self.right = QSplitter(Qt.Orientation.Vertical)
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.right.addWidget(self.stacks[1])
        self.right.addWidget(self.stacks[2])
        self.split.addWidget(self.stacks[0])
        self.split.addWidget(self.right)
        for split, sizes in ((self.split, [3, 2]), (self.right, [1, 1])):
            split.setChildrenCollapsible(False)
            split.setSizes([400 * size for size in sizes])
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.split)

    # -- content ----------------------------------------------------------------------------

    def set_volume(self, cuts: Sequence[Cut], shape: tuple[int, int, int], start: Voxel) -> None:
        """Another volume; one of the same size keeps the crosshair."""
        same = shape == self.shape and bool(self.cuts)
        self.cuts, self.shape = tuple(cuts), shape
        for cut, pane, difference in zip(cuts, self.panes, self.differences, strict=True):
            for one in (pane, difference):
                one.set_placement(cut.placement)
                one.set_caption(cut.name)
        self._moving = True
        for cut, link in zip(cuts, self.links, strict=True):
            link.set_slice_count(shape[cut.axis])
        self._moving = False
        self._place(self.voxel if same else start)

    def show_cuts(
        self, what: str, pictures: Sequence[np.ndarray], modality: str, lines: tuple[str, ...]
    ) -> None:
        """Result, reference or difference; ``lines`` say how it was made."""
        panes = self.differences if what == DIFFERENCE else self.panes
        for cut, stack, pane, picture in zip(self.cuts, self.stacks, panes, pictures, strict=True):
            pane.set_run_lines(*lines)
            pane.show_cut(picture, cut.pixel_mm, modality)
            stack.setCurrentWidget(pane)  # not before: the picture in it was of another voxel

    def name_slice(self, words: str) -> None:
        for pane in (self.panes[0], self.differences[0]):
            pane.set_caption(f"{self.cuts[0].name}, {words}")

    def clear(self, words: str = MISSING) -> None:
        for pane in (*self.panes, *self.differences):
            pane.set_empty_text(words)
            pane.clear()

    # -- the crosshair ----------------------------------------------------------------------

    def go_to(self, voxel: Voxel) -> None:
        inside = [min(max(v, 0), n - 1) for v, n in zip(voxel, self.shape, strict=True)]
        self._place((inside[0], inside[1], inside[2]))

    def _place(self, voxel: Voxel) -> None:
        self.voxel, self._moving = voxel, True
        for cut, link in zip(self.cuts, self.links, strict=True):
            link.set_slice(voxel[cut.axis])
            link.set_crosshair(cut.centre_mm(voxel, self.shape))
        self._moving = False
        self.moved.emit()

    def _on_slice(self, axis: int, number: int) -> None:
        if not self._moving and self.cuts:
            voxel = list(self.voxel)
            voxel[self.cuts[axis].axis] = number
            self.go_to((voxel[0], voxel[1], voxel[2]))

    def _on_crosshair(self, axis: int) -> None:
        if self._moving or not self.cuts:
            return
        point, cut = self.links[axis].state.crosshair, self.cuts[axis]
        if point is None:  # a reset of the view: the crosshair stays in its voxel
            self._place(self.voxel)
            return
        column = round(point[0] / cut.pixel_mm[1] + self.shape[cut.right] / 2 - 0.5)
        row = round(point[1] / cut.pixel_mm[0] + self.shape[cut.down] / 2 - 0.5)
        self.go_to(cut.voxel((column, row), self.voxel, self.shape))

    def maximise(self, stack: QStackedWidget) -> None:
        """One cut alone, or all three again."""
        self._alone = None if self._alone is stack else stack
        for one in self.stacks:
            one.setVisible(self._alone in (None, one))
        self.right.setVisible(self._alone is not self.stacks[0])
