"""A picture in a small window, for whoever works in Python and not in the workstation."""

from __future__ import annotations

from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QApplication, QLabel


def show(png: bytes, title: str) -> QLabel:
    """Until it is closed; with an application of the caller's the window is only opened."""
    application = QApplication.instance()
    started = application or QApplication([])
    label = QLabel()
    label.setPixmap(QPixmap.fromImage(QImage.fromData(png)))
    label.setWindowTitle(title)
    label.show()
    if application is None:
        started.exec()
    return label
