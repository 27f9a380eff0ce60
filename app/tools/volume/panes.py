"""Three linked cuts: one voxel, one window, and each pane's own zoom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QLineF, QPointF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QMouseEvent, QPen, QTransform, QUndoStack
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsLineItem,
    QGraphicsRectItem,
    QSplitter,
    QStackedWidget,
    QWidget,
)

from app.images.compare import DifferencePane
from app.images.display import LinkedView, Tool
from app.images.inspector import Inspector
from app.images.mouse import REACH_PX, SMALLEST_PX, Drag
from app.images.pane import ImagePane
from app.images.view import PaneView, cosmetic
from app.images.window_level import WindowModel
from app.theme import RunStyle
from app.tools.volume.source import DIFFERENCE
from app.tools.volume.space import ONE, Cut, Thick, Voxel
from app.widgets import in_column

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
        self.slab = ONE
        self.undo = QUndoStack(self)
        self.inspectors = [self._inspector(at) for at in range(3)]
        self.cuts: tuple[Cut, ...] = ()
        self.shape: tuple[int, int, int] = (1, 1, 1)
        self.voxel: Voxel = (0, 0, 0)
        self._alone: QStackedWidget | None = None
        self._moving = False
        self._build()
        for axis, link in enumerate(self.links):
            link.slice_changed.connect(lambda number, of=axis: self._on_slice(of, number))
            link.crosshair_changed.connect(lambda of=axis: self._on_crosshair(of))

    def _inspector(self, at: int) -> Inspector:
        """Measures what is drawn on the cut that is seen; one Undo for all three."""
        link, both = self.links[at], (self.panes[at], self.differences[at])
        link.measurements.stack = self.undo
        inspector = Inspector(link, lambda: [one for one in both if one.isVisible()], self)
        for either in both:
            either.image_changed.connect(inspector.refresh_soon)
        return inspector

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
        in_column(self.split, margins=0, parent=self)

    # -- content ----------------------------------------------------------------------------

    def set_volume(self, cuts: Sequence[Cut], shape: tuple[int, int, int], start: Voxel) -> None:
        """Another volume; one of the same size keeps the crosshair."""
        same = shape == self.shape and bool(self.cuts)
        self.cuts, self.shape = tuple(cuts), shape
        for cut, pane, difference in zip(cuts, self.panes, self.differences, strict=True):
            for one in (pane, difference):
                one.set_placement(cut.placement)
                one.set_caption(cut.name)
                one.set_run_style(RunStyle(COLOURS[cut.axis]))
                one.view.set_line_colours(COLOURS[cut.down], COLOURS[cut.right])
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

    def set_reading_step(self, step: int) -> None:
        """Of the slices as they were acquired; other volumes' measurements are gone."""
        self.links[0].reading_step = step
        for link in self.links:
            link.measurements.forget()

    def set_slab(self, slab: Thick) -> None:
        self.slab = slab
        self._show_slab()

    def _show_slab(self) -> None:
        """Between which lines the other cuts' slabs lie."""
        for cut, *both in zip(self.cuts, self.panes, self.differences, strict=True):
            edges = []
            for axis in (cut.down, cut.right):
                (other,) = (one for one in self.cuts if one.axis == axis)
                span = other.span(self.voxel, self.shape, self.slab)
                edges.append(cut.edges_mm(axis, span, self.shape) if len(span) > 1 else None)
            for one in both:
                one.view.set_slab_edges(*edges)

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
        self._show_slab()
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


_HATCH: Final = QColor("#5a5a5a")


COLOURS: Final = ("#56B4E9", "#E69F00", "#CC79A7")  # of the cuts across slice, row, column
Edges = tuple[float, float]


class CutView(PaneView):
    """The lines show where the other two cuts are, in their colours, and how thick they are.

    A left click sets the crosshair, a left drag on one of its lines moves it.

    Any other left drag changes the window, as in all panes.
    """

    _pressed_at: QPointF | None = None

    def __init__(
        self, link: LinkedView, window_model: WindowModel, parent: QWidget | None = None
    ) -> None:
        super().__init__(link, window_model, parent)
        self._slab_lines = [QGraphicsLineItem(self.canvas) for _ in range(4)]
        self.set_line_colours(*COLOURS[1:])
        self.set_slab_edges(None, None)

    def set_line_colours(self, across_down: str, across_right: str) -> None:
        """The horizontal line is the cut across what runs down, the vertical one the other."""
        colours = (across_down, across_right)
        lines = (*self._crosshair, *self._slab_lines)
        for number, line in enumerate(lines):
            colour = colours[number if number < 2 else number // 2 - 1]
            style = Qt.PenStyle.SolidLine if number < 2 else Qt.PenStyle.DotLine
            line.setPen(cosmetic(QColor(colour), style))

    def set_slab_edges(self, down: Edges | None, right: Edges | None) -> None:
        """In mm from the centre; None for a cut of one plane."""
        width, height = self.link.field
        places = [
            None if edges is None else (edges[side], flat)
            for edges, flat in ((down, True), (right, False))
            for side in (0, 1)
        ]
        for line, place in zip(self._slab_lines, places, strict=True):
            line.setVisible(place is not None)
            if place is not None:
                at, flat = place
                ends = (-width, at, width, at) if flat else (at, -height, at, height)
                line.setLine(QLineF(*ends))

    def make_image_item(self, parent: QGraphicsItem) -> pg.ImageItem:
        self.hatch = QGraphicsRectItem(parent)  # first, so that it lies below the image
        self.hatch.setPen(QPen(Qt.PenStyle.NoPen))
        self.hatch.setBrush(QBrush(_HATCH, Qt.BrushStyle.BDiagPattern))
        return super().make_image_item(parent)

    def apply_view(self) -> None:
        super().apply_view()
        scale = 1 / self.pixels_per_mm()
        brush = self.hatch.brush()
        brush.setTransform(QTransform.fromScale(scale, scale))  # as wide at any zoom
        self.hatch.setBrush(brush)
        width, height = self.field_mm
        self.hatch.setRect(-width / 2, -height / 2, width, height)

    def take_hold(self, position: QPointF) -> Drag | None:
        point = self.link.state.crosshair
        if point is None or self.link.tool is not Tool.WINDOW:
            return None
        x, y = self.to_mm(position)
        if min(abs(x - point[0]), abs(y - point[1])) > REACH_PX / self.pixels_per_mm():
            return None
        return lambda now: self.link.set_crosshair(self.to_mm(now))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        self._pressed_at = event.position() if left else None
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        pressed, self._pressed_at = self._pressed_at, None
        if pressed is None or self.link.tool is not Tool.WINDOW:
            return
        way = event.position() - pressed
        if max(abs(way.x()), abs(way.y())) < SMALLEST_PX:
            self.link.set_crosshair(self.to_mm(event.position()))


class _Hatched(ImagePane):
    """What is not a number lets the hatching through."""

    view: CutView

    def make_view(self) -> PaneView:
        return CutView(self.link, self.window_model)

    def _displayed(self, values: np.ndarray, finite: np.ndarray) -> np.ndarray:
        self.annotations.not_finite = 0  # a slice that is not there yet is no fault
        return values

    def clear(self) -> None:
        super().clear()
        self.view.hatch.setVisible(False)

    def show_cut(self, picture: np.ndarray, pixel_mm: tuple[float, float], modality: str) -> None:
        self.set_image(picture, pixel_mm, modality)
        self.view.hatch.setVisible(True)


class CutPane(_Hatched):
    """Of the result or the reference."""


class DifferenceCut(_Hatched, DifferencePane):
    """Of result − reference, with the scale of all differences."""
