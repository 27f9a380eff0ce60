"""Axes that read well in a small plot and stay where they are while a run goes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath, QPolygonF

if TYPE_CHECKING:
    pass

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LABELLED = (2, 5)  # of the ticks between two powers, when there are hardly any powers
BETWEEN = -1.0  # instead of a distance between those ticks
HALF_LINE_PX = 8
_MINOR = [math.log10(n) for n in range(2, 10)]


def power_text(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


class RoomyAxis(pg.AxisItem):
    """Shows the numbers at its ends too, which pyqtgraph drops where there is a grid."""

    def boundingRect(self) -> QRectF:
        return super().boundingRect().adjusted(0, -HALF_LINE_PX, 0, HALF_LINE_PX)


class PowerAxis(RoomyAxis):
    """Ticks of an axis whose coordinates are log10 of the values: 10⁻², 10⁻¹, 1, ..."""

    def tickValues(
        self, minVal: float, maxVal: float, size: float
    ) -> list[tuple[float, list[float]]]:
        low, high = min(minVal, maxVal), max(minVal, maxVal)
        room = max(2, int(size / (24 if self.orientation in ("left", "right") else 40)))
        decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        step = max(1, math.ceil(len(decades) / room))
        majors = [float(n) for n in decades if n % step == 0]
        minors = [float(n) for n in decades if n % step]
        if step == 1 and len(decades) <= 4:
            start = math.floor(low)
            finer = [n + m for n in range(start, math.ceil(high)) for m in _MINOR]
            minors += [value for value in finer if low <= value <= high]
        levels = [(float(step), majors), (0.0, minors)]
        if len(majors) < 2:  # one number is no scale
            between = [n for n in minors if _digit(n) in LABELLED]
            levels.insert(1, (BETWEEN, between))
        return levels

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if not spacing:
            return [""] * len(values)
        if spacing == BETWEEN:
            return [f"{_digit(value)}·{power_text(math.floor(value))}" for value in values]
        return [power_text(round(value)) for value in values]


def _digit(value: float) -> int:
    """The first digit of 10 to the power of ``value``."""
    return round(10 ** (value - math.floor(value)))


class SteadyRange:
    """A range that only grows, and by whole steps, so that a live curve does not jump."""

    def __init__(self, step: float) -> None:
        self.step = step
        self._low: float | None = None
        self._high: float | None = None

    def reset(self) -> None:
        self._low = self._high = None

    def include(self, values: np.ndarray) -> bool:
        """Make room for the finite values; whether the range has changed."""
        finite = values[np.isfinite(values)]
        if not finite.size:
            return False
        low = self.step * math.floor(float(finite.min()) / self.step)
        high = self.step * math.ceil(float(finite.max()) / self.step)
        if high <= low:
            high = low + self.step
        before = (self._low, self._high)
        self._low = low if self._low is None else min(low, self._low)
        self._high = high if self._high is None else max(high, self._high)
        return before != (self._low, self._high)

    @property
    def limits(self) -> tuple[float, float] | None:
        if self._low is None or self._high is None:
            return None
        return self._low, self._high


def value_text(value: float) -> str:
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e5 or not value else f"{value:.2e}"


def shade_path(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> QPainterPath:
    """One polygon per stretch where both curves exist and ``low`` is below ``high``."""
    path = QPainterPath()
    with np.errstate(invalid="ignore"):
        inside = np.isfinite(x) & np.isfinite(low) & np.isfinite(high) & (low <= high)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], inside.astype(np.int8), [0]))))
    for start, stop in edges.reshape(-1, 2):
        if stop - start < 2:
            continue
        part = slice(start, stop)
        forth = [QPointF(a, b) for a, b in zip(x[part], low[part], strict=True)]
        back = [QPointF(a, b) for a, b in zip(x[part][::-1], high[part][::-1], strict=True)]
        path.addPolygon(QPolygonF(forth + back))
        path.closeSubpath()
    return path
