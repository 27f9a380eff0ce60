"""Pictures of the window with its dialogs before it, numbered as they are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from app.tour.user_input import TourError, rest

TITLE_PX: Final = 28
EDGE_PX: Final = 8
LAYOUT_MS: Final = 30  # of a dialog that was made smaller
SETTLE_MS: Final = 150  # for layouts and for plots that wait for their turn
KINDS: Final = (Qt.WindowType.Dialog, Qt.WindowType.Window)


class Camera:
    def __init__(self, window: QWidget, folder: Path, size: QSize) -> None:
        self.window, self.folder, self.size = window, folder, size
        self.taken: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)

    def shoot(self, name: str) -> Path:
        """Other windows are drawn in the middle."""
        self.window.resize(self.size)
        rest(SETTLE_MS)
        picture = self.window.grab()
        for dialog in self.dialogs():
            self._draw(picture, dialog)
        path = self.folder / f"{len(self.taken) + 1:02d}-{name}.png"
        if not picture.save(str(path)):
            raise TourError(f"{path} could not be written")
        self.taken.append(path)
        if picture.size() != self.size:
            found = f"{picture.width()}x{picture.height()}"
            raise TourError(f"the window does not get smaller than {found}")
        return path

    def dialogs(self) -> list[QWidget]:
        """The windows before the main one."""
        return [
            widget
            for widget in QApplication.topLevelWidgets()
            if widget is not self.window and widget.isVisible() and widget.windowType() in KINDS
        ]

    def _draw(self, picture: QPixmap, dialog: QWidget) -> None:
        """With a plain title, since the frame is the desktop's and not in the picture."""
        room = QSize(picture.width() - 2 * EDGE_PX, picture.height() - TITLE_PX - 2 * EDGE_PX)
        dialog.resize(dialog.size().boundedTo(room))
        rest(LAYOUT_MS)
        content = dialog.grab()
        corner = QPoint(
            (picture.width() - content.width()) // 2,
            (picture.height() - content.height() + TITLE_PX) // 2,
        )
        palette = dialog.palette()
        title = QRect(corner.x(), corner.y() - TITLE_PX, content.width(), TITLE_PX)
        painter = QPainter(picture)
        painter.fillRect(title, palette.color(QPalette.ColorRole.Button))
        painter.setPen(palette.color(QPalette.ColorRole.ButtonText))
        painter.drawText(title, Qt.AlignmentFlag.AlignCenter, dialog.windowTitle())
        painter.drawPixmap(corner, content)
        painter.setPen(palette.color(QPalette.ColorRole.Mid))
        painter.drawRect(title.united(QRect(corner, content.size())).adjusted(-1, -1, 0, 0))
        painter.end()
