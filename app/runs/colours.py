"""One colour and one dash pattern per run, the same in every pane, plot, table and report."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from app.theme import RunStyle, run_style
from engine.spec import run_colours
from engine.spec.run_colours import Dash as Dash

DOTS: Final[Dash] = (1, 3)


def style_of(job: dict[str, Any]) -> RunStyle:
    return run_style(run_colours.method_of(job))


def dash_for(style: RunStyle, taken: Collection[Dash]) -> Dash:
    return run_colours.dash_for(style.dash, taken)


SWATCH_PX = QSize(24, 14)


def run_pen(colour: str, dash: Dash, width: float = 1.0, pixel_ratio: float = 1.0) -> QPen:
    """Cosmetic: as wide on the screen at any zoom, in pixels of the screen itself."""
    pen = QPen(QColor(colour), width * max(1, round(pixel_ratio)))
    pen.setCosmetic(True)
    if dash:
        pen.setDashPattern(list(dash))
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


def swatch(colour: str, dash: Dash, pixel_ratio: float = 1.0) -> QPixmap:
    pixmap = QPixmap(SWATCH_PX * pixel_ratio)
    pixmap.setDevicePixelRatio(pixel_ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    pen = run_pen(colour, tuple(part / 2 for part in dash), 2.0, pixel_ratio)
    painter.setPen(pen)
    middle = SWATCH_PX.height() / 2
    painter.drawLine(QPointF(0, middle), QPointF(SWATCH_PX.width(), middle))
    painter.end()
    return pixmap
