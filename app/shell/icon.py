"""The program's icon, drawn sharp at every size a system asks for."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from engine.files.folders import RESOURCES

FILE: Final = RESOURCES / "icons" / "dualscope.svg"
SIZES_PX: Final = (16, 20, 24, 32, 48, 64, 128, 256)


def app_icon() -> QIcon:
    """Call it when there is an application; without the file the icon is empty, not an error."""
    icon = QIcon()
    renderer = QSvgRenderer(str(FILE)) if FILE.is_file() else QSvgRenderer()
    if renderer.isValid():
        for size in SIZES_PX:
            icon.addPixmap(_drawn(renderer, size))
    return icon


def _drawn(renderer: QSvgRenderer, size: int) -> QPixmap:
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return pixmap
