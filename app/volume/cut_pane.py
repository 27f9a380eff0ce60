"""A pane for a cut through a volume: a click moves the crosshair, missing slices are hatched."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QBrush, QColor, QMouseEvent, QPen, QTransform
from PySide6.QtWidgets import QGraphicsItem, QGraphicsRectItem

from app.images.compare import DifferencePane
from app.images.display import Tool
from app.images.mouse import REACH_PX, SMALLEST_PX, Drag
from app.images.pane import ImagePane
from app.images.view import PaneView

_HATCH: Final = QColor("#5a5a5a")


class CutView(PaneView):
    """A left click sets the crosshair, a left drag on one of its lines moves it.

    Any other left drag changes the window, as in all panes.
    """

    _pressed_at: QPointF | None = None

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

    def make_view(self) -> PaneView:
        return CutView(self.link, self.window_model)

    def _displayed(self, values: np.ndarray, finite: np.ndarray) -> np.ndarray:
        self.annotations.not_finite = 0  # a slice that is not there yet is no fault
        return values

    def clear(self) -> None:
        super().clear()
        if isinstance(self.view, CutView):
            self.view.hatch.setVisible(False)

    def show_cut(self, picture: np.ndarray, pixel_mm: tuple[float, float], modality: str) -> None:
        self.set_image(picture, pixel_mm, modality)
        if isinstance(self.view, CutView):
            self.view.hatch.setVisible(True)


class CutPane(_Hatched):
    """Of the result or the reference."""


class DifferenceCut(_Hatched, DifferencePane):
    """Of result − reference, with the scale of all differences."""
