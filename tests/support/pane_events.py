"""Pictures and mouse events for tests of image panes."""

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
PIXEL = (0.8, 0.8)


def picture(seed, rows=64, columns=64):
    return np.random.default_rng(seed).normal(40, 100, (rows, columns)).astype(np.float32)


def move(pane, x, y, modifiers=NONE, buttons=Qt.MouseButton.NoButton):
    target, at = pane.view.viewport(), QPointF(x, y)
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        at,
        target.mapToGlobal(at),
        Qt.MouseButton.NoButton,
        buttons,
        modifiers,
    )
    QApplication.sendEvent(target, event)


def stroke(pane, start, end, button=LEFT):
    target = pane.view.viewport()
    QTest.mousePress(target, button, NONE, QPoint(*start))
    QTest.mouseMove(target, QPoint(*end))
    QTest.mouseRelease(target, button, NONE, QPoint(*end))


def drag(pane, button, dx, dy, start=(150, 150)):
    target = pane.view.viewport()
    first = QPoint(*start)
    QTest.mousePress(target, button, NONE, first)
    QTest.mouseMove(target, first + QPoint(dx // 2, dy // 2))
    QTest.mouseMove(target, first + QPoint(dx, dy))
    QTest.mouseRelease(target, button, NONE, first + QPoint(dx, dy))
