"""Axes that read well in a small plot and stay where they are while a run goes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainterPath, QPolygonF
from PySide6.QtWidgets import QLabel

from app.theme import tabular

if TYPE_CHECKING:
    from app.plots.curves import CurvePlot

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


class Cursor:
    """Reads the nearest point of each curve; the label keeps to the side away from the line."""

    def __init__(self, plot: CurvePlot) -> None:
        self.plot = plot
        self.line = pg.InfiniteLine(angle=90, movable=False)
        self.line.setVisible(False)
        plot.addItem(self.line, ignoreBounds=True)
        self.label = QLabel(plot)
        self.label.setTextFormat(Qt.TextFormat.RichText)
        self.label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.label.setAutoFillBackground(True)
        self.label.setMargin(4)
        self.label.hide()
        self._x: float | None = None

    def style(self, text: QColor, font: QFont) -> None:
        faint = QColor(text)
        faint.setAlphaF(0.5)
        self.line.setPen(faint)
        self.label.setFont(tabular(font))

    def hide(self) -> None:
        self._x = None
        self.line.setVisible(False)
        self.label.hide()

    def step(self, points: int) -> None:
        """To the next point of the longest curve."""
        xs = max((self._points(key)[0] for key in self.plot.curves), key=len, default=None)
        if xs is None or not len(xs):
            return
        now = len(xs) - 1 if self._x is None else int(np.argmin(np.abs(xs - self._x))) + points
        self.move_to(float(xs[min(max(now, 0), len(xs) - 1)]))

    def move_to(self, x: float) -> None:
        rows: list[str] = []
        nearest = None
        for key, (name, colour) in self.plot.names.items():
            xs, ys = self._points(key)
            if not len(xs):
                continue
            i = int(np.argmin(np.abs(xs - x)))
            nearest = float(xs[i]) if nearest is None else nearest
            value = value_text(10 ** float(ys[i]) if self.plot.log_y else float(ys[i]))
            rows.append(f'<span style="color:{colour}">■</span> {name} {value}')
        if nearest is None:
            self.hide()
            return
        self._x = nearest
        self.line.setPos(nearest)
        self.line.setVisible(True)
        at = value_text(10**nearest) if self.plot.log_x else f"{nearest:g}"
        self.label.setText("<br>".join([f"{self.plot.x_label} {at}", *rows]))
        self._place(nearest)

    def _points(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        xs, ys = self.plot.curves[key].getData()
        if xs is None or ys is None:
            return np.empty(0), np.empty(0)
        good = np.isfinite(xs) & np.isfinite(ys)
        return xs[good], ys[good]

    def _place(self, x: float) -> None:
        self.label.adjustSize()
        box = self.plot.getPlotItem().getViewBox()
        area = self.plot.mapFromScene(box.sceneBoundingRect()).boundingRect()
        low, high = box.viewRange()[0]
        on_the_left = x > (low + high) / 2
        left = area.left() + 4 if on_the_left else area.right() - self.label.width() - 4
        left = min(max(left, 0), max(self.plot.width() - self.label.width(), 0))
        self.label.move(left, area.top() + 4)
        self.label.show()


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
