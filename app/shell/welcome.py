"""The tour of the first start: a bubble beside one part of the window after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import shiboken6
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPalette, QPen, QPolygon
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from app.widgets import in_row

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


ARROW_PX: Final = 10
WIDTH_PX: Final = 320
EDGE_PX: Final = 8  # kept free around the bubble


class Spot(NamedTuple):
    """Where a bubble goes, the side of it the arrow is on, and where along that side."""

    rect: QRect
    side: str  # 'left', 'right', 'top', 'bottom', or '' for a bubble without an arrow
    tip: int


def spot_beside(target: QRect, size: QSize, room: QRect) -> Spot:
    """Right of the target, else left, below, above; over its middle when nothing fits.

    Never outside ``room``: all three in the same coordinates.
    """
    inner = room.adjusted(EDGE_PX, EDGE_PX, -EDGE_PX, -EDGE_PX)
    across = _within(target.center().y() - size.height() // 2, size.height(), inner.y(), inner)
    along = _within(target.center().x() - size.width() // 2, size.width(), inner.x(), inner, True)
    places = (
        ("left", QPoint(target.right() + 1, across)),
        ("right", QPoint(target.left() - size.width(), across)),
        ("top", QPoint(along, target.bottom() + 1)),
        ("bottom", QPoint(along, target.top() - size.height())),
    )
    for side, corner in places:
        rect = QRect(corner, size)
        if inner.contains(rect):
            tip = (
                target.center().y() - rect.y()
                if side in ("left", "right")
                else target.center().x() - rect.x()
            )
            length = rect.height() if side in ("left", "right") else rect.width()
            return Spot(rect, side, max(2 * ARROW_PX, min(tip, length - 2 * ARROW_PX)))
    return Spot(QRect(QPoint(along, across), size), "", 0)


def _within(start: int, length: int, low: int, room: QRect, wide: bool = False) -> int:
    high = (room.right() if wide else room.bottom()) + 1 - length
    return max(low, min(start, high))


class Bubble(QFrame):
    """A title, some words and three buttons; draws itself, moves where it is told."""

    next_asked = Signal()
    back_asked = Signal()
    skip_asked = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.side, self.tip = "", 0
        self.title = QLabel(self)
        font = self.title.font()
        font.setBold(True)
        font.setPixelSize(15)
        self.title.setFont(font)
        self.text = QLabel(self)
        self.text.setWordWrap(True)
        for label in (self.title, self.text):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setForegroundRole(QPalette.ColorRole.ToolTipText)
        self.count = QLabel(self)
        self.count.setForegroundRole(QPalette.ColorRole.ToolTipText)
        self.count.setAccessibleName("Step of the tour")
        self.skipButton = self._button("Skip", "End the tour; the Help menu has it again. (Esc)")
        self.backButton = self._button("Back", "")
        self.nextButton = self._button("Next", "")
        self.skipButton.clicked.connect(self.skip_asked)
        self.backButton.clicked.connect(self.back_asked)
        self.nextButton.clicked.connect(self.next_asked)
        row = in_row((self.count, 1), self.skipButton, self.backButton, self.nextButton, spacing=8)
        self.column = layout = QVBoxLayout(self)
        layout.setContentsMargins(*[16 + ARROW_PX] * 4)
        layout.setSpacing(8)
        layout.addWidget(self.title)
        layout.addWidget(self.text)
        layout.addSpacing(8)
        layout.addLayout(row)
        self.hide()

    def say(self, title: str, text: str, number: int, total: int) -> None:
        self.title.setText(title)
        self.text.setText(text)
        self.count.setText(f"{number} of {total}")
        self.setAccessibleName(f"Tour, {number} of {total}: {title}")
        self.setAccessibleDescription(text)
        self.backButton.setEnabled(number > 1)
        self.backButton.setToolTip(
            "Go to the step before this one." if number > 1 else "This is the first step."
        )
        last = number == total
        self.nextButton.setText("Done" if last else "Next")
        self.nextButton.setToolTip("End the tour." if last else "Go to the next step.")
        self.skipButton.setVisible(not last)

    def wanted_size(self) -> QSize:
        width = WIDTH_PX + 2 * ARROW_PX
        return QSize(width, self.column.heightForWidth(width))

    def put(self, spot: Spot) -> None:
        self.side, self.tip = spot.side, spot.tip
        self.setGeometry(spot.rect)
        self.raise_()
        self.update()

    def _button(self, text: str, tip: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setToolTip(tip)
        button.setAutoDefault(True)  # Enter presses the one with the focus
        return button

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.skip_asked.emit()
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Left):
            forth = event.key() == Qt.Key.Key_Right
            (self.next_asked if forth else self.back_asked).emit()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes round inside the bubble, which is where the keyboard is wanted."""
        ring = [
            button
            for button in (self.skipButton, self.backButton, self.nextButton)
            if button.isVisible() and button.isEnabled()
        ]
        focused = self.window().focusWidget()
        place = ring.index(focused) if focused in ring else -1
        step = place + (1 if forward else -1) if place >= 0 else 0
        ring[step % len(ring)].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = self.palette()
        painter.setBrush(palette.color(QPalette.ColorRole.ToolTipBase))
        painter.setPen(QPen(palette.color(QPalette.ColorRole.Accent), 2))
        painter.drawPolygon(self._outline())
        painter.end()

    def _outline(self) -> QPolygon:
        """The body and the arrow in one line, clockwise."""
        a, tip = ARROW_PX, self.tip
        left, top, right, bottom = a, a, self.width() - a, self.height() - a
        points = [(left, top)]
        if self.side == "top":
            points += [(tip - a, top), (tip, 1), (tip + a, top)]
        points.append((right, top))
        if self.side == "right":
            points += [(right, tip - a), (self.width() - 1, tip), (right, tip + a)]
        points.append((right, bottom))
        if self.side == "bottom":
            points += [(tip + a, bottom), (tip, self.height() - 1), (tip - a, bottom)]
        points.append((left, bottom))
        if self.side == "left":
            points += [(left, tip + a), (1, tip), (left, tip - a)]
        return QPolygon([QPoint(x, y) for x, y in points])
