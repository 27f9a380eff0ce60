"""Small drawn icons of the tools, in the colours of the palette."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPalette, QPen, QPixmap

from app.images.display import Tool

SIDE: Final = 18
SCALE: Final = 3  # drawn larger than shown: sharp on every screen


def tool_icon(tool: Tool, palette: QPalette) -> QIcon:
    """As it looks on a button, and on one that is pressed."""
    icon = QIcon()
    roles = {
        QIcon.State.Off: QPalette.ColorRole.ButtonText,
        QIcon.State.On: QPalette.ColorRole.HighlightedText,
    }
    for state, role in roles.items():
        icon.addPixmap(_drawn(tool, palette.color(role)), QIcon.Mode.Normal, state)
    return icon


def _drawn(tool: Tool, colour: QColor) -> QPixmap:
    picture = QPixmap(SIDE * SCALE, SIDE * SCALE)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.scale(SCALE, SCALE)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colour, 1.4))
    box = QRectF(2.5, 4.5, 13, 9)
    match tool:
        case Tool.WINDOW:  # the half-dark circle that viewers use for brightness and contrast
            circle = QRectF(3, 3, 12, 12)
            painter.drawEllipse(circle)
            painter.setBrush(colour)
            painter.drawChord(circle, 90 * 16, 180 * 16)
        case Tool.RECTANGLE:
            painter.drawRect(box)
        case Tool.ELLIPSE:
            painter.drawEllipse(box)
        case Tool.LINE:
            painter.drawLine(QPointF(3.5, 14), QPointF(14.5, 4))
            painter.setBrush(colour)
            for end in (QPointF(3.5, 14), QPointF(14.5, 4)):
                painter.drawEllipse(end, 1.4, 1.4)
    painter.end()
    return picture
