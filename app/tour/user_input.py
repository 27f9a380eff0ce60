"""What a person does with mouse and keyboard, and how long they wait for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEventLoop, QMimeData, QPoint, QPointF, QRect, Qt, QTimer, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollArea,
    QWidget,
)

PATIENCE_S: Final = 120.0
LOOK_MS: Final = 20
LEFT, NO_KEYS = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
Share = tuple[float, float]  # of a widget's width and height


class TourError(Exception):
    """A step could not be taken; the message says why."""


def wait(done: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """Let the window work until ``done``."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TourError(f"waited {seconds:g} s in vain: {what}")
        rest(LOOK_MS)


def rest(ms: int) -> None:
    """Let the window work for a while. (QTest.qWait would stop all other Python threads.)"""
    loop = QEventLoop()
    QTimer.singleShot(ms, loop.quit)
    loop.exec()


def choose_action(action: QAction) -> None:
    """From a menu."""
    if not action.isEnabled():
        raise TourError(f"the menu does not offer '{action.text()}': {action.toolTip()}")
    action.trigger()


def click(widget: QWidget, at: QPoint | None = None, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    name = widget.accessibleName() or type(widget).__name__
    if not widget.isVisible() or not widget.isEnabled():
        raise TourError(f"'{name}' cannot be clicked: {widget.toolTip() or 'it is hidden'}")
    if isinstance(widget, QAbstractButton) and at is None:
        widget.click()  # a check box is narrower than its widget
    else:
        QTest.mouseClick(widget, LEFT, keys, at or widget.rect().center())


def press(widget: QWidget, key: Qt.Key) -> None:
    widget.setFocus()
    QTest.keyClick(widget, key)


def drag(widget: QWidget, start: Share, end: Share) -> None:
    first, last = _point(widget, start), _point(widget, end)
    QTest.mousePress(widget, LEFT, NO_KEYS, first)
    QTest.mouseMove(widget, QRect(first, last).center())
    QTest.mouseMove(widget, last)
    QTest.mouseRelease(widget, LEFT, NO_KEYS, last)


def write(line: QWidget, text: str) -> None:
    """Replace the text of a line."""
    if not isinstance(line, QLineEdit) or not line.isEnabled():
        raise TourError(f"nothing can be written into '{line.accessibleName()}'")
    line.setFocus()
    line.selectAll()
    QTest.keyClicks(line, text)


def choose(box: QWidget, text: str) -> None:
    """An entry of a combo box that begins with ``text``, by the arrow keys."""
    found = box.findText(text, Qt.MatchFlag.MatchStartsWith) if isinstance(box, QComboBox) else -1
    if not isinstance(box, QComboBox) or found < 0 or not box.isEnabled():
        raise TourError(f"'{text}' cannot be chosen in '{box.accessibleName()}'")
    while box.currentIndex() != found:
        press(box, Qt.Key.Key_Down if box.currentIndex() < found else Qt.Key.Key_Up)


def drop(window: QWidget, path: Path) -> None:
    """Let a file fall on a window."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    at, copy = QPoint(40, 40), Qt.DropAction.CopyAction
    for event in (
        QDragEnterEvent(at, copy, mime, LEFT, NO_KEYS),
        QDropEvent(QPointF(at), copy, mime, LEFT, NO_KEYS),
    ):
        QApplication.sendEvent(window, event)


def bring_into_sight(widget: QWidget) -> None:
    """Scroll what the widget lies in, so that it begins at the top."""
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if area is not None:
        QApplication.processEvents()
        top = widget.mapTo(area.widget(), QPoint(0, 0)).y()
        area.verticalScrollBar().setValue(top - 8)


def _point(widget: QWidget, share: Share) -> QPoint:
    return QPoint(round(share[0] * widget.width()), round(share[1] * widget.height()))
