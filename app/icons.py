"""The one family of icons: drawings in resources/icons, in the colours of the palette.

They are 24 units wide, of lines 1.75 wide in ``currentColor``. A colour is put in when an icon
is drawn, so that a change of the theme needs no new icons.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from engine.files.folders import RESOURCES

SIDE: Final = 18
FOLDER: Final = RESOURCES / "icons"


def icon(name: str) -> QIcon:
    """``name`` is that of the file; a tool's icon is called like the tool."""
    return QIcon(_Engine(name))


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.svg") if path.stem != "dualscope")


@lru_cache(maxsize=256)
def _drawing(name: str, colour: str) -> QByteArray:
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    return QByteArray(text.replace("currentColor", colour).encode())


class _Engine(QIconEngine):
    """Looks up the colour whenever it draws: pressed, disabled, light and dark differ."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def clone(self) -> QIconEngine:
        return _Engine(self.name)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        role, group = QPalette.ColorRole.ButtonText, QPalette.ColorGroup.Active
        if mode == QIcon.Mode.Disabled:
            group = QPalette.ColorGroup.Disabled
        elif state == QIcon.State.On or mode == QIcon.Mode.Selected:
            role = QPalette.ColorRole.HighlightedText
        colour = QApplication.palette().color(group, role).name()
        side = min(rect.width(), rect.height())
        square = QRectF(0, 0, side, side)
        square.moveCenter(QRectF(rect).center())
        QSvgRenderer(_drawing(self.name, colour)).render(painter, square)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        picture = QPixmap(size)
        if picture.isNull():  # of a button that is not laid out yet
            return picture
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.paint(painter, QRect(QPoint(0, 0), size), mode, state)
        painter.end()
        return picture
