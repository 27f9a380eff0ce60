"""The black surface of a pane: the image, the crosshair and what is drawn on it.

One canvas item carries the transform from mm to pixels, computed from the shared state and the
size of this pane. So nothing is linked view to view, and a resize cannot make linked panes drift
apart (pyqtgraph #1348); pyqtgraph's ViewBox, which would range and drag by itself, is not used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QGraphicsItem, QGraphicsLineItem, QGraphicsRectItem, QWidget

from app.images.display import LinkedView, Tool
from app.images.drawn import DrawnItems
from app.images.mouse import Drag, MouseActions
from app.images.window_level import WindowModel

_CROSSHAIR: Final = QColor("#56B4E9")
_CURSORS: Final = {
    Tool.WINDOW: Qt.CursorShape.ArrowCursor,
    Tool.PAN: Qt.CursorShape.OpenHandCursor,
    Tool.ZOOM: Qt.CursorShape.SizeVerCursor,
}


class PaneView(pg.GraphicsView):
    double_clicked = Signal(object)  # keyboard modifiers
    pressed = Signal()
    menu_asked = Signal(object)  # where, in pixels of the view
    resized = Signal()
    left = Signal()

    def __init__(
        self, link: LinkedView, window_model: WindowModel, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, useOpenGL=False, background=QColor(0, 0, 0))
        self.link = link
        self.window_model = window_model
        self.pixel_mm: tuple[float, float] = (1.0, 1.0)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the pane takes the keys
        self.setMinimumSize(96, 96)
        self.mouse_actions = MouseActions(self)

        self.canvas = QGraphicsRectItem()
        self.canvas.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
        self.scene().addItem(self.canvas)
        self.image_item = self.make_image_item(self.canvas)
        pen = cosmetic(_CROSSHAIR, Qt.PenStyle.DashLine)
        self._crosshair = [_marker(QGraphicsLineItem(self.canvas), pen) for _ in range(2)]
        self.drawn = DrawnItems(self.canvas, link.measurements)
        self.words: Mapping[int, str] = {}  # what was measured, by number

        link.view_changed.connect(self.apply_view)
        link.crosshair_changed.connect(self._show_crosshair)
        link.measurements.changed.connect(self.show_drawn)
        link.tool_changed.connect(self._show_tool)
        self._show_tool(link.tool)
        self._show_crosshair()

    def make_image_item(self, parent: QGraphicsItem) -> pg.ImageItem:
        item = pg.ImageItem(axisOrder="row-major", autoLevels=False)
        item.setParentItem(parent)
        item.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        return item

    # -- geometry ---------------------------------------------------------------------------

    @property
    def pane_size(self) -> tuple[float, float]:
        return float(self.viewport().width()), float(self.viewport().height())

    @property
    def field_mm(self) -> tuple[float, float]:
        """Width and height of this pane's own image."""
        image = self.image_item.image
        if image is None:
            return 1.0, 1.0
        return image.shape[1] * self.pixel_mm[1], image.shape[0] * self.pixel_mm[0]

    def seen(self) -> QRectF:
        """The part of the image that is in sight, in pixels of the pane."""
        wide, high = self.field_mm
        whole = self.mm_to_screen().mapRect(QRectF(-wide / 2, -high / 2, wide, high))
        return whole.intersected(QRectF(QPointF(0, 0), QSizeF(*self.pane_size)))

    def mm_to_screen(self) -> QTransform:
        return self.link.state.transform(self.pane_size, self.link.field)

    def pixels_per_mm(self) -> float:
        return self.link.state.pixels_per_mm(self.pane_size, self.link.field)

    def magnification(self) -> float:
        """Pixels of the screen across one pixel of the image."""
        return self.pixels_per_mm() * self.pixel_mm[1] * self.devicePixelRatioF()

    def to_mm(self, position: QPointF) -> tuple[float, float]:
        point = self.mm_to_screen().inverted()[0].map(position)
        return point.x(), point.y()

    def pixel_at(self, point: tuple[float, float]) -> tuple[int, int] | None:
        """(column, row) of the pixel at ``point`` mm; None outside the image."""
        return pixel_at(self.image_item.image, self.pixel_mm, point)

    def place(self, item: pg.ImageItem, pixel_mm: tuple[float, float]) -> None:
        """Lay an image's pixels out in mm about its centre."""
        rows, columns = item.image.shape[:2]
        item.setTransform(
            QTransform(
                pixel_mm[1], 0, 0, pixel_mm[0], -columns * pixel_mm[1] / 2, -rows * pixel_mm[0] / 2
            )
        )

    def apply_view(self) -> None:
        self.canvas.setTransform(self.mm_to_screen())
        # a reduced image is always smoothed: else it would lose whole rows
        smooth = self.link.smooth or self.magnification() < 1
        self.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
        self._show_crosshair()
        self.show_drawn()

    # -- markers ----------------------------------------------------------------------------

    def _show_crosshair(self) -> None:
        point = self.link.state.crosshair
        for item in self._crosshair:
            item.setVisible(point is not None)
        if point is not None:
            width, height = self.link.field
            self._crosshair[0].setLine(QLineF(-width, point[1], width, point[1]))
            self._crosshair[1].setLine(QLineF(point[0], -height, point[0], height))

    def show_drawn(self) -> None:
        self.drawn.refresh(self.pixels_per_mm(), self.words)

    def set_words(self, words: Mapping[int, str]) -> None:
        if words != self.words:
            self.words = words
            self.show_drawn()

    def _show_tool(self, tool: Tool) -> None:
        self.mouse_actions.cancel()
        self.viewport().setCursor(_CURSORS.get(tool, Qt.CursorShape.CrossCursor))

    def ask_menu(self, position: QPointF) -> None:
        self.menu_asked.emit(position)

    def take_hold(self, position: QPointF) -> Drag | None:
        """For subclasses: something under the mouse that a left drag moves."""
        return None

    # -- Qt ---------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if hasattr(self, "canvas"):  # pyqtgraph calls this while it is being built
            self.apply_view()
            self.resized.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
        self.mouse_actions.press(event.button(), event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.mouse_actions.move(event.position(), event.modifiers())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.mouse_actions.release(event.button(), event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.mouse_actions.cancel()
            self.double_clicked.emit(event.modifiers())

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.mouse_actions.wheel(event)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.ignore()

    def leaveEvent(self, event: QEvent) -> None:
        if not self.mouse_actions.dragging:
            self.link.set_cursor(None)
        self.left.emit()


def pixel_at(
    image: np.ndarray | None, pixel_mm: tuple[float, float], point: tuple[float, float]
) -> tuple[int, int] | None:
    """(column, row) of the pixel of ``image`` at ``point`` mm from its centre."""
    if image is None:
        return None
    rows, columns = image.shape
    column = math.floor(point[0] / pixel_mm[1] + columns / 2)
    row = math.floor(point[1] / pixel_mm[0] + rows / 2)
    return (column, row) if 0 <= column < columns and 0 <= row < rows else None


def _marker(item: QGraphicsLineItem, pen: QPen) -> QGraphicsLineItem:
    item.setPen(pen)
    item.setVisible(False)
    return item


def cosmetic(colour: QColor, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    pen = QPen(colour, 1, style)
    pen.setCosmetic(True)  # one pixel wide at any zoom
    return pen
