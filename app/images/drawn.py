"""The measurements of a pane as they are drawn: outline, handles, name and value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QPointF
from PySide6.QtGui import QBrush, QColor, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QGraphicsSimpleTextItem

from app.images.measure import Kind, Measurement, Measurements
from app.theme import SMALLEST_TEXT_PX

_AREA: Final = QColor("#F0E442")
_LINE: Final = QColor("#5BD75B")
_EDGE: Final = QColor(0, 0, 0, 200)
_HANDLE_PX: Final = 3
_HEAD_PX: Final = 12  # of an arrow
_LABEL_PX: Final = 6  # from a shape to its name


class _Label(QGraphicsSimpleTextItem):
    """Upright and as large at any zoom and turn; readable on bone as on air."""

    def __init__(self, parent: QGraphicsItem, colour: QColor) -> None:
        super().__init__(parent)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIgnoresTransformations)
        font = self.font()
        font.setPixelSize(SMALLEST_TEXT_PX + 1)
        font.setBold(True)
        self.setFont(font)
        self.setBrush(QBrush(colour))
        self.under = QGraphicsSimpleTextItem(self)
        self.under.setFlag(QGraphicsItem.GraphicsItemFlag.ItemStacksBehindParent)
        self.under.setFont(font)
        self.under.setPen(QPen(_EDGE, 2.5))

    def put(self, words: str) -> None:
        self.setText(words)
        self.under.setText(words)


class DrawnItem(QGraphicsPathItem):
    """One measurement; ``scale`` is in pixels of the screen to a mm."""

    def __init__(self, parent: QGraphicsItem, kind: Kind) -> None:
        super().__init__(parent)
        self.under = QGraphicsPathItem(self)  # a dark edge on either side of the line
        self.under.setFlag(QGraphicsItem.GraphicsItemFlag.ItemStacksBehindParent)
        self.colour = _AREA if kind in (Kind.RECTANGLE, Kind.ELLIPSE, Kind.FREEHAND) else _LINE
        self.label = _Label(self, self.colour)

    def show_measurement(self, one: Measurement, words: str, selected: bool, scale: float) -> None:
        path = path_of(one, scale, selected)
        for item, pen in (
            (self.under, QPen(_EDGE, 3.5)),
            (self, QPen(self.colour, 2 if selected else 1.25)),
        ):
            pen.setCosmetic(True)
            item.setPen(pen)
            item.setPath(path)
        self.label.put(f"{one.name}\n{words}" if words else one.name)
        _, _, right, bottom = one.box
        at = QPointF(right, bottom) if one.is_area else QPointF(*one.end)
        gap = _LABEL_PX / scale
        self.label.setPos(at + QPointF(gap, gap / 2))


def path_of(one: Measurement, scale: float, handles: bool) -> QPainterPath:
    path = QPainterPath()
    first, *others = (QPointF(*point) for point in one.outline())
    path.moveTo(first)
    for point in others:
        path.lineTo(point)
    if one.kind is Kind.ARROW:
        _head(path, one, _HEAD_PX / scale)
    if one.kind is Kind.RULER:  # a stroke across each end
        (x0, y0), (x1, y1) = one.start, one.end
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        across = QPointF(y0 - y1, x1 - x0) * (_HEAD_PX / 2 / scale / length)
        for end in (QPointF(*one.start), QPointF(*one.end)):
            path.moveTo(end - across)
            path.lineTo(end + across)
    reach = _HANDLE_PX / scale
    for x, y in one.handles() if handles else ():
        path.addRect(x - reach, y - reach, 2 * reach, 2 * reach)
    return path


def _head(path: QPainterPath, one: Measurement, size: float) -> None:
    (x0, y0), (x1, y1) = one.start, one.end
    way = math.atan2(y1 - y0, x1 - x0)
    for side in (-1, 1):
        turn = way + math.pi + side * math.radians(25)
        path.moveTo(QPointF(x1, y1))
        path.lineTo(QPointF(x1 + size * math.cos(turn), y1 + size * math.sin(turn)))


class DrawnItems:
    """Keeps one item for each measurement on the slice that is shown."""

    def __init__(self, canvas: QGraphicsItem, model: Measurements) -> None:
        self._canvas, self._model = canvas, model
        self.items: dict[int, DrawnItem] = {}

    def refresh(self, scale: float, words: Mapping[int, str]) -> None:
        shown = {one.number: one for one in self._model.shown()}
        for number in [number for number in self.items if number not in shown]:
            item = self.items.pop(number)
            item.scene().removeItem(item)
        for number, one in shown.items():
            if number not in self.items:
                self.items[number] = DrawnItem(self._canvas, one.kind)
            selected = number == self._model.selected
            self.items[number].show_measurement(one, words.get(number, ""), selected, scale)
