"""The region and the line a person draws: once, for every pane. No widgets here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QObject, Signal

Point = tuple[float, float]


class Shape(Enum):
    RECTANGLE = "rectangle"
    ELLIPSE = "ellipse"


@dataclass(frozen=True)
class Region:
    """A rectangle, or the ellipse inside it, by two corners in mm from the image's centre."""

    shape: Shape
    start: Point
    end: Point

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        (x0, y0), (x1, y1) = self.start, self.end
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def holds(self, point: Point) -> bool:
        left, top, right, bottom = self.box
        return left <= point[0] <= right and top <= point[1] <= bottom

    def moved(self, dx: float, dy: float) -> Region:
        (x0, y0), (x1, y1) = self.start, self.end
        return Region(self.shape, (x0 + dx, y0 + dy), (x1 + dx, y1 + dy))

    def grabbed_at(self, point: Point, reach_mm: float) -> Region | None:
        """The same region with its corner near ``point`` as ``end``, ready to be dragged."""
        left, top, right, bottom = self.box
        for x, other_x in ((left, right), (right, left)):
            for y, other_y in ((top, bottom), (bottom, top)):
                if math.dist(point, (x, y)) <= reach_mm:
                    return Region(self.shape, (other_x, other_y), (x, y))
        return None


@dataclass(frozen=True)
class Line:
    """A straight line between two points in mm from the image's centre."""

    start: Point
    end: Point

    @property
    def length_mm(self) -> float:
        return math.dist(self.start, self.end)


class Measurements(QObject):
    """The one region and the one line of a group of panes."""

    region_changed = Signal(object)  # Region or None
    line_changed = Signal(object)  # Line or None

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.region: Region | None = None
        self.line: Line | None = None

    def set_region(self, region: Region | None) -> None:
        if region != self.region:
            self.region = region
            self.region_changed.emit(region)

    def set_line(self, line: Line | None) -> None:
        if line != self.line:
            self.line = line
            self.line_changed.emit(line)

    def clear(self) -> None:
        self.set_region(None)
        self.set_line(None)
