"""A view of two images in one place, the second one clipped at a divider."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsLineItem, QGraphicsRectItem, QWidget

from app.images.display import LinkedView
from app.images.mouse import Drag
from app.images.view import PaneView, pixel_at
from app.images.window import WindowModel

REACH_PX: Final = 8


class SwipeView(PaneView):
    """Image A left of the divider, B right of it; or only one of them."""

    divider_moved = Signal(float)

    def __init__(
        self, link: LinkedView, window_model: WindowModel, parent: QWidget | None = None
    ) -> None:
        super().__init__(link, window_model, parent)
        self.divider = 0.5  # part of the pane's width
        self.pixel_mm_b: tuple[float, float] = (1.0, 1.0)
        self._edge = 1.0  # where B begins: the divider, or an end of the pane
        # A under B under the markers: B's clip must not hide the crosshair and the region
        self._under = _group(self.scene(), -2)
        self.image_item.setParentItem(self._under)
        self._clip = QGraphicsRectItem()
        self._clip.setPen(QPen(Qt.PenStyle.NoPen))
        self._clip.setFlag(QGraphicsItem.GraphicsItemFlag.ItemClipsChildrenToShape)
        self._clip.setZValue(-1)
        self.scene().addItem(self._clip)
        self._background = QGraphicsRectItem(self._clip)  # where B has no pixels, A must not show
        self._background.setPen(QPen(Qt.PenStyle.NoPen))
        self._background.setBrush(QColor(0, 0, 0))
        self._over = QGraphicsRectItem(self._clip)
        self._over.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
        self.item_b = self.make_image_item(self._over)
        self._rule = QGraphicsLineItem()
        self._rule.setPen(QPen(QColor("#e8e8e8"), 1))
        self.scene().addItem(self._rule)
        self.apply_view()

    @property
    def swiping(self) -> bool:
        return self._rule.isVisible()

    def set_b(self, image: np.ndarray, pixel_mm: tuple[float, float]) -> None:
        """``image`` without NaN, for display."""
        self.item_b.setVisible(True)
        self.item_b.setImage(image, autoLevels=False)
        self.pixel_mm_b = pixel_mm
        self.place(self.item_b, pixel_mm)

    def show_swipe(self) -> None:
        self._rule.setVisible(True)
        self._edge = self.divider
        self._place_divider()

    def show_only(self, a: bool) -> None:
        self._rule.setVisible(False)
        self._edge = 1.0 if a else 0.0
        self._place_divider()

    def set_divider(self, part: float) -> None:
        self.divider = min(max(part, 0.0), 1.0)
        if self.swiping:
            self.show_swipe()
        self.divider_moved.emit(self.divider)

    def shows_b(self, point: tuple[float, float]) -> bool:
        """Whether B is what is seen at ``point`` mm."""
        return self.mm_to_screen().map(QPointF(*point)).x() >= self._edge * self.pane_size[0]

    def pixel_of_b(self, point: tuple[float, float]) -> tuple[int, int] | None:
        return pixel_at(self.item_b.image, self.pixel_mm_b, point)

    def _place_divider(self) -> None:
        width, height = self.pane_size
        x = self._edge * width
        self._clip.setRect(QRectF(x, 0, width - x, height))
        self._background.setRect(QRectF(0, 0, width, height))
        self._rule.setLine(QLineF(x, 0, x, height))

    def apply_view(self) -> None:
        super().apply_view()
        if hasattr(self, "_rule"):  # called once while the base is being built
            for canvas in (self._under, self._over):
                canvas.setTransform(self.mm_to_screen())
            self._place_divider()

    def _near_divider(self, position: QPointF) -> bool:
        return self.swiping and abs(position.x() - self.divider * self.pane_size[0]) <= REACH_PX

    def take_hold(self, position: QPointF) -> Drag | None:
        if not self._near_divider(position):
            return None
        return lambda now: self.set_divider(now.x() / self.pane_size[0])

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if self._near_divider(event.position()):
            self.viewport().setCursor(Qt.CursorShape.SplitHCursor)
        elif not self.mouse_actions.dragging:
            self._show_tool(self.link.tool)


def _group(scene: object, z: float) -> QGraphicsRectItem:
    item = QGraphicsRectItem()
    item.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents)
    item.setZValue(z)
    scene.addItem(item)  # type: ignore[attr-defined]
    return item
