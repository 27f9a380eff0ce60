"""Measuring by keyboard: M draws with the chosen tool, arrows move and stretch what is selected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, Qt

from app.images.display import LinkedView
from app.images.measure import Kind, Measurement, Point

if TYPE_CHECKING:
    from app.images.view import PaneView

PART: Final = 8  # a new one is so much smaller than what is seen of the image
CORNERS: Final = 24  # of a region that would be drawn by hand
_ARROWS: Final = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


def points_of(kind: Kind, middle: Point, half: float) -> tuple[Point, ...]:
    """A first shape of each kind, ``half`` mm to each side."""
    x, y = middle
    if kind in (Kind.RULER, Kind.ARROW):
        return (x - half, y), (x + half, y)
    if kind is Kind.ANGLE:
        return (x + half, y), (x, y), (x, y - half)
    if kind is Kind.FREEHAND:
        turns = [2 * math.pi * n / CORNERS for n in range(CORNERS)]
        return tuple((x + half * math.cos(t), y + half * math.sin(t)) for t in turns)
    return (x - half, y - half), (x + half, y + half)


class KeyDrawing:
    def __init__(self, link: LinkedView, view: PaneView) -> None:
        self._link, self._view = link, view

    def press(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        """Whether the key meant something here."""
        shift = modifiers == Qt.KeyboardModifier.ShiftModifier
        ctrl = modifiers == Qt.KeyboardModifier.ControlModifier
        if key == Qt.Key.Key_M and not modifiers:
            return self._draw()
        drawn = self._link.measurements
        one = drawn.get(drawn.selected)
        if one is None or one not in drawn.shown() or key not in _ARROWS or not (shift or ctrl):
            return False
        dx, dy = self._step(*_ARROWS[Qt.Key(key)])
        drawn.put(one.moved(dx, dy) if shift else self._stretched(one, dx, dy))
        drawn.settle("Move a measurement")
        return True

    def _draw(self) -> bool:
        try:
            kind = Kind(self._link.tool.value)
        except ValueError:
            self._link.notice.emit("Choose a tool that measures, then press M.")
            return True
        view, drawn = self._view, self._link.measurements
        wide, high = view.pane_size
        middle = self._link.state.crosshair or view.to_mm(QPointF(wide / 2, high / 2))
        half = min(wide, high) / view.pixels_per_mm() / PART / 2
        drawn.put(drawn.new(kind, points_of(kind, middle, half)))
        drawn.settle()
        return True

    def _step(self, right: int, down: int) -> Point:
        """One pixel of the image, as the picture is turned."""
        x, y = self._link.state.orientation.to_image(right, down)
        rows_mm, columns_mm = self._view.pixel_mm
        return x * columns_mm, y * rows_mm

    @staticmethod
    def _stretched(one: Measurement, dx: float, dy: float) -> Measurement:
        handles = one.handles()
        if not handles:  # an outline drawn by hand is only moved
            return one.moved(dx, dy)
        x, y = handles[-1]
        return one.reshaped(len(handles) - 1, (x + dx, y + dy))
