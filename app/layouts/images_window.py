"""The images in a window of their own, for a second monitor."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QWidget

from app.shell.icon import app_icon
from app.widgets import in_column


class ImagesWindow(QWidget):
    """Shows a part of the main window; closing it says so, and the part goes back."""

    closed = Signal()

    def __init__(self, part: QWidget, beside: QWidget) -> None:
        super().__init__(beside, Qt.WindowType.Window)
        self.setWindowTitle(f"Images - {beside.windowTitle()}")
        self.setWindowIcon(app_icon())
        in_column(part, margins=0, parent=self)
        part.show()
        mine = beside.screen()
        other = next((one for one in QGuiApplication.screens() if one is not mine), None)
        place = (other or mine).availableGeometry()
        if other is None:  # beside the pointer's work, not over all of it
            self.resize(place.width() * 3 // 4, place.height() * 3 // 4)
            self.move(place.center() - self.rect().center())
            self.show()
        else:
            self.setGeometry(place)
            self.showMaximized()

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.closed.emit()
