"""A line under the mouse and the values of all curves there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QLabel

from app.theme import tabular

if TYPE_CHECKING:
    from app.plots.curves import CurvePlot


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
