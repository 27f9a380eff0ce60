"""What a person draws to measure: once, for every pane. No widgets here.

Points are in mm from the image's centre. A measurement belongs to the slice it was drawn on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

Point = tuple[float, float]


class Kind(Enum):
    RULER = "ruler"
    ANGLE = "angle"
    ELLIPSE = "ellipse"
    RECTANGLE = "rectangle"
    FREEHAND = "freehand"
    ARROW = "arrow"


NAMES: Final = {Kind.RULER: "Length", Kind.ANGLE: "Angle", Kind.ARROW: "Arrow"}
BOXES: Final = (Kind.RECTANGLE, Kind.ELLIPSE)
AREAS: Final = (*BOXES, Kind.FREEHAND)
_ROUND: Final = 64  # points of an ellipse's outline


@dataclass(frozen=True)
class Measurement:
    """``points``: two corners, two ends, the ends of an angle around its vertex, an outline."""

    kind: Kind
    points: tuple[Point, ...]
    slice: int = 0
    name: str = ""
    number: int = 0  # of its own, for as long as it is there

    @property
    def start(self) -> Point:
        return self.points[0]

    @property
    def end(self) -> Point:
        return self.points[-1]

    @property
    def is_area(self) -> bool:
        return self.kind in AREAS

    @property
    def whole(self) -> bool:
        """Whether all of it is drawn: an angle has two legs."""
        return self.kind is not Kind.ANGLE or len(self.points) == 3

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        x, y = zip(*self.points, strict=True)
        return min(x), min(y), max(x), max(y)

    @property
    def length_mm(self) -> float | None:
        return math.dist(self.start, self.end) if self.kind is Kind.RULER else None

    @property
    def angle_degrees(self) -> float | None:
        """Between the two legs, from 0 to 180."""
        if self.kind is not Kind.ANGLE or not self.whole:
            return None
        (x0, y0), (x, y), (x1, y1) = self.points
        a, b = (x0 - x, y0 - y), (x1 - x, y1 - y)
        return math.degrees(math.atan2(abs(a[0] * b[1] - a[1] * b[0]), a[0] * b[0] + a[1] * b[1]))

    def outline(self) -> list[Point]:
        """As it is drawn, from point to point; that of an area is closed."""
        left, top, right, bottom = self.box
        if self.kind is Kind.RECTANGLE:
            return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        if self.kind is Kind.ELLIPSE:
            turns = [2 * math.pi * n / _ROUND for n in range(_ROUND + 1)]
            return [
                (
                    (left + right + (right - left) * math.cos(turn)) / 2,
                    (top + bottom + (bottom - top) * math.sin(turn)) / 2,
                )
                for turn in turns
            ]
        return [*self.points, self.start] if self.kind is Kind.FREEHAND else list(self.points)

    def handles(self) -> list[Point]:
        """What a drag takes hold of to change the shape."""
        if self.kind is Kind.FREEHAND:
            return []
        left, top, right, bottom = self.box
        corners = [(x, y) for x in (left, right) for y in (top, bottom)]
        return corners if self.kind in BOXES else list(self.points)

    def moved(self, dx: float, dy: float) -> Measurement:
        return replace(self, points=tuple((x + dx, y + dy) for x, y in self.points))

    def reshaped(self, at: int, point: Point) -> Measurement:
        """With its handle number ``at`` elsewhere."""
        if self.kind in BOXES:  # handle 3 - n is opposite to handle n
            return replace(self, points=(self.handles()[3 - at], point))
        points = list(self.points)
        points[at] = point
        return replace(self, points=tuple(points))

    def near(self, point: Point, reach_mm: float) -> bool:
        """Whether the outline passes by."""
        return any(_apart(point, a, b) <= reach_mm for a, b in pairwise(self.outline()))

    def holds(self, point: Point) -> bool:
        """Whether ``point`` lies in the area."""
        left, top, right, bottom = self.box
        inside = left <= point[0] <= right and top <= point[1] <= bottom
        return self.is_area and inside

    def grabbed(self, point: Point, reach_mm: float, inside: bool) -> Drawing | None:
        """What a drag from ``point`` makes of it: reshaped, moved, or nothing."""
        for at, handle in enumerate(self.handles()):
            if math.dist(point, handle) <= reach_mm:
                return lambda now: self.reshaped(at, now)
        if self.near(point, reach_mm) or (inside and self.holds(point)):
            return lambda now: self.moved(now[0] - point[0], now[1] - point[1])
        return None


Drawing = Callable[[Point], Measurement]


def _apart(point: Point, a: Point, b: Point) -> float:
    """From a point to the stretch from ``a`` to ``b``."""
    way = (b[0] - a[0], b[1] - a[1])
    square = way[0] ** 2 + way[1] ** 2
    along = (point[0] - a[0]) * way[0] + (point[1] - a[1]) * way[1]
    part = min(max(along / square, 0.0), 1.0) if square else 0.0
    return math.dist(point, (a[0] + part * way[0], a[1] + part * way[1]))


class Measurements(QObject):
    """All that is drawn on a group of panes; one of them may be selected.

    While the mouse draws, `put` shows what comes of it; `settle` makes one step to undo of it.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.stack = QUndoStack(self)  # the window puts its own here
        self.all: tuple[Measurement, ...] = ()
        self.slice = 0  # that is shown
        self.selected: int | None = None  # number of one
        self.data = 0  # which data these are of: steps of other data are no longer taken back
        self._settled: tuple[Measurement, ...] = ()
        self._next = 1

    def shown(self) -> list[Measurement]:
        return [one for one in self.all if one.slice == self.slice]

    def get(self, number: int | None) -> Measurement | None:
        return next((one for one in self.all if one.number == number), None)

    @property
    def region(self) -> Measurement | None:
        """Whose statistics are shown: the selected area, else the newest one on this slice."""
        return self._of(AREAS)

    @property
    def line(self) -> Measurement | None:
        """Whose profile is shown."""
        return self._of((Kind.RULER,))

    def _of(self, kinds: Sequence[Kind]) -> Measurement | None:
        found = [one for one in self.shown() if one.kind in kinds]
        chosen = [one for one in found if one.number == self.selected]
        return next(reversed(chosen or found), None)

    # -- drawing ----------------------------------------------------------------------------

    def new(self, kind: Kind, points: tuple[Point, ...]) -> Measurement:
        """One to `put`, with a name that no other has."""
        word = NAMES.get(kind, "Region")
        taken = {one.name for one in self.all}
        count = 1
        while f"{word} {count}" in taken:
            count += 1
        self._next += 1
        return Measurement(kind, points, self.slice, f"{word} {count}", self._next)

    def put(self, one: Measurement) -> None:
        """Add it, or put it in its own place, and select it."""
        there = self.get(one.number) is not None
        marks = (
            tuple(one if other.number == one.number else other for other in self.all)
            if there
            else (*self.all, one)
        )
        self._show(marks, one.number)

    def settle(self, words: str = "Measure") -> None:
        whole = tuple(one for one in self.all if one.whole)
        self._show(whole, self.selected)
        if self.all != self._settled:
            before, self._settled = self._settled, self.all
            self.stack.push(_Change(self, words, before, self.all))

    def _show(self, all_: tuple[Measurement, ...], selected: int | None) -> None:
        if (all_, selected) != (self.all, self.selected):
            self.all, self.selected = all_, selected
            if self.get(selected) is None:
                self.selected = None
            self.changed.emit()

    def restore(self, all_: tuple[Measurement, ...]) -> None:
        self._settled = all_
        self._show(all_, self.selected)

    # -- the list ---------------------------------------------------------------------------

    def select(self, number: int | None) -> None:
        self._show(self.all, number)

    def rename(self, number: int, name: str) -> None:
        one, name = self.get(number), " ".join(name.split())
        if one is not None and name:
            self.put(replace(one, name=name))
            self.settle("Rename a measurement")

    def remove(self, number: int | None) -> None:
        self._show(tuple(one for one in self.all if one.number != number), self.selected)
        self.settle("Remove a measurement")

    def remove_selected(self) -> None:
        self.remove(self.selected)

    def clear(self) -> None:
        self._show((), None)
        self.settle("Remove all measurements")

    def forget(self) -> None:
        """Other data are open: nothing of the last ones comes back."""
        self.data += 1
        self._settled = ()
        self._show((), None)

    def set_slice(self, number: int) -> None:
        if number != self.slice:
            self.slice = number
            self.changed.emit()


class _Change(QUndoCommand):
    def __init__(
        self,
        owner: Measurements,
        words: str,
        before: tuple[Measurement, ...],
        after: tuple[Measurement, ...],
    ) -> None:
        super().__init__(words)
        self._owner, self._data = owner, owner.data
        self._before, self._after = before, after

    def undo(self) -> None:
        self._take(self._before)

    def redo(self) -> None:
        self._take(self._after)

    def _take(self, all_: tuple[Measurement, ...]) -> None:
        if self._owner.data == self._data:
            self._owner.restore(all_)
        else:
            self.setObsolete(True)
