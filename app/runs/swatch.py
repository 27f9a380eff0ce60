"""A short piece of a run's line, for legends and tables."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from app.runs.colours import Dash

SWATCH_PX = QSize(24, 14)


def run_pen(colour: str, dash: Dash, width: float = 1.0) -> QPen:
    """Cosmetic: as wide on the screen at any zoom."""
    pen = QPen(QColor(colour), width)
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
    pen = run_pen(colour, tuple(part / 2 for part in dash), 2.0)
    painter.setPen(pen)
    middle = SWATCH_PX.height() / 2
    painter.drawLine(QPointF(0, middle), QPointF(SWATCH_PX.width(), middle))
    painter.end()
    return pixmap
