"""The tour of the first start: a bubble beside one part of the window after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import shiboken6
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.shell.bubble import Bubble, spot_beside

Step = tuple[QWidget, str, str]  # what it is about, title, words
MOVES: Final = (
    QEvent.Type.Resize,
    QEvent.Type.Move,
    QEvent.Type.Show,
    QEvent.Type.Hide,
    QEvent.Type.LayoutRequest,
)


class WelcomeTour(QObject):
    """Not modal: everything can be used meanwhile; parts that are hidden are passed over."""

    finished = Signal()  # read to the end or skipped

    def __init__(self, window: QWidget, steps: Sequence[Step]) -> None:
        super().__init__(window)
        self.window, self.steps = window, list(steps)
        self.place = -1
        self.bubble = Bubble(window)
        self.bubble.next_asked.connect(self.next)
        self.bubble.back_asked.connect(self.back)
        self.bubble.skip_asked.connect(self.end)
        self._watched: list[QWidget] = []
        self._focus_before: QWidget | None = None
        # many parts move when one does: look once, after all of them have
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._follow)

    @property
    def running(self) -> bool:
        return self.place >= 0

    def start(self) -> None:
        self._focus_before = self.window.focusWidget()
        self._go(-1, 1)

    @Slot()
    def next(self) -> None:
        self._go(self.place, 1)

    @Slot()
    def back(self) -> None:
        if any(self._usable(place) for place in range(self.place)):
            self._go(self.place, -1)

    @Slot()
    def end(self) -> None:
        if not shiboken6.isValid(self.bubble) or not self.bubble.isEnabled():
            return
        self.place = -1
        self._watch([])
        self._timer.stop()
        inside = self.bubble.isAncestorOf(self.window.focusWidget() or self.window)
        self.bubble.setEnabled(False)
        self.bubble.hide()
        self.bubble.deleteLater()
        before = self._focus_before
        if inside and before is not None and shiboken6.isValid(before):
            before.setFocus()
        self.finished.emit()

    def _go(self, start: int, step: int) -> None:
        place = start + step
        while 0 <= place < len(self.steps) and not self._usable(place):
            place += step
        if not 0 <= place < len(self.steps):
            self.end()
            return
        self.place = place
        target, title, text = self.steps[place]
        usable = [number for number in range(len(self.steps)) if self._usable(number)]
        self.bubble.say(title, text, usable.index(place) + 1, len(usable))
        self._watch(_chain(target, self.window))
        self.bubble.show()
        self._put()
        self.bubble.nextButton.setFocus(Qt.FocusReason.OtherFocusReason)

    def _usable(self, place: int) -> bool:
        target = self.steps[place][0]
        return shiboken6.isValid(target) and target.isVisibleTo(self.window)

    def _put(self) -> None:
        target = self.steps[self.place][0]
        corner = target.mapTo(self.window, QPoint(0, 0))
        seen = QRect(corner, target.size()).intersected(self.window.rect())
        self.bubble.put(spot_beside(seen, self.bubble.wanted_size(), self.window.rect()))

    def _watch(self, widgets: list[QWidget]) -> None:
        for widget in self._watched:
            if shiboken6.isValid(widget):
                widget.removeEventFilter(self)
        self._watched = widgets
        for widget in widgets:
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in MOVES and self.running:
            self._timer.start(0)
        return False

    @Slot()
    def _follow(self) -> None:
        if not self.running or not self.window.isVisible():
            return
        if self._usable(self.place):
            self._put()
        else:
            self._go(self.place, 1)


def _chain(widget: QWidget, window: QWidget) -> list[QWidget]:
    """The widget and all it lies in: any of them may move it."""
    chain = [widget]
    while chain[-1] is not window and (parent := chain[-1].parentWidget()) is not None:
        chain.append(parent)
    return chain
