"""The one place where errors reach a person: a bar over the edge of the images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QEnterEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
)
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QToolButton, QWidget

from app.shell.crash import DetailsDialog
from app.theme import is_dark
from app.widgets import in_row

STRIPE_PX: Final = 4
# of an error and of a notice, on light and on dark
COLOURS: Final = {True: ("#b3261e", "#ff8a73"), False: ("#0b63a5", "#6cb4ea")}
SIGNS: Final = {True: "⚠", False: "ℹ"}


class Messages(QWidget):
    """Shows the newest message; hidden when there is none.

    Esc dismisses from within the bar, and anywhere in
    ``window`` when nothing else there had a use for it. Call from the GUI thread only; from
    other threads emit a signal that is connected to `error`.
    """

    def __init__(self, window: QWidget | None = None) -> None:
        super().__init__(window)
        self.queue = MessageQueue(self)
        self.setAccessibleName("Messages")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.sign = QLabel(self)
        self.sign.setAccessibleName("Kind of message")
        self.sentence = QLabel(self)
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.sentence.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.count = QLabel(self)
        self.count.setAccessibleName("Messages that wait")
        self.detailsButton = QPushButton("Details…", self)
        self.detailsButton.setAccessibleName("Details of this message")
        self.detailsButton.setToolTip("Show all that is known about this, to read or to copy.")
        self.dismissButton = QToolButton(self)
        self.dismissButton.setText("✕")
        self.dismissButton.setAutoRaise(True)
        self.dismissButton.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.dismissButton.setAccessibleName("Dismiss this message")
        self.dismissButton.setToolTip("Dismiss this message. (Esc)")
        in_row(
            self.sign,
            (self.sentence, 1),
            self.count,
            self.detailsButton,
            self.dismissButton,
            spacing=8,
            margins=(STRIPE_PX + 8, 4, 8, 4),
            parent=self,
        )
        self.detailsButton.clicked.connect(self.show_details)
        self.dismissButton.clicked.connect(self.queue.dismiss)
        self.queue.changed.connect(self._show)
        self.queue.arrived.connect(self._announce)
        if window is not None:
            window.installEventFilter(self)
        self._show()

    @Slot(str)
    @Slot(str, str)
    def error(self, sentence: str, details: str = "") -> None:
        """Stays until it is dismissed."""
        self.queue.add(Message(sentence, details))

    @Slot(str)
    def notice(self, text: str) -> None:
        """Goes after a few seconds, or when the next message comes."""
        self.queue.add(Message(text, error=False))

    @Slot()
    def show_details(self) -> None:
        if (current := self.queue.current) is not None:
            DetailsDialog(current.sentence, current.details, self.window()).show()

    @Slot()
    def _show(self) -> None:
        current, waiting = self.queue.current, self.queue.waiting
        self.setVisible(current is not None)
        if current is None:
            return
        times = f"  ({current.times} times)" if current.times > 1 else ""
        self.sign.setText(SIGNS[current.error])
        self.sentence.setText(current.sentence + times)
        self.sentence.setAccessibleName(
            f"{'Error' if current.error else 'Notice'}: {current.sentence}{times}"
        )
        self.count.setText(f"+{waiting} more")
        self.count.setToolTip("Messages that come to light when this one is dismissed.")
        self.count.setVisible(waiting > 0)
        self.detailsButton.setVisible(bool(current.details))
        self.update()

    @Slot(str)
    def _announce(self, sentence: str) -> None:
        """Screen readers speak it; the focus stays where the person works."""
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, sentence))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # the window sees a key only when the widget with the focus had no use for it
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and self._dismissed_by(event)
        ):
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._dismissed_by(event):
            super().keyPressEvent(event)

    def _dismissed_by(self, event: QKeyEvent) -> bool:
        if event.key() != Qt.Key.Key_Escape or event.modifiers() or self.isHidden():
            return False
        self.queue.dismiss()
        return True

    def enterEvent(self, event: QEnterEvent) -> None:
        self.queue.hold(True)
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self.queue.hold(False)
        super().leaveEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        current = self.queue.current
        if current is None:
            return
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().color(QPalette.ColorRole.Base))
        painter.setPen(self.palette().color(QPalette.ColorRole.Mid))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        colour = QColor(COLOURS[current.error][is_dark(self.palette())])
        painter.fillRect(0, 0, STRIPE_PX, self.height(), colour)
        painter.end()


NOTICE_MS: Final = 6000
MOST: Final = 50


@dataclass
class Message:
    sentence: str
    details: str = ""
    error: bool = True
    times: int = 1


class MessageQueue(QObject):
    """The newest is shown first: it is what the last action caused. Notices go by themselves."""

    changed = Signal()
    arrived = Signal(str)  # a sentence to announce

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.messages: list[Message] = []  # the last is shown
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(NOTICE_MS)
        self._timer.timeout.connect(self._on_time)

    @property
    def current(self) -> Message | None:
        return self.messages[-1] if self.messages else None

    @property
    def waiting(self) -> int:
        return max(len(self.messages) - 1, 0)

    def add(self, message: Message) -> None:
        """Put it on top; one that says the same is counted instead of repeated."""
        for old in self.messages:
            if (old.sentence, old.error) == (message.sentence, message.error):
                message.times += old.times
                self.messages.remove(old)
                break
        # a notice is about now: what follows it takes its place
        self.messages = [old for old in self.messages if old.error][-(MOST - 1) :]
        self.messages.append(message)
        self._show()
        self.arrived.emit(message.sentence)

    @Slot()
    def dismiss(self) -> None:
        if self.messages:
            self.messages.pop()
            self._show()

    def retract(self, sentence: str) -> None:
        """It is not true any more."""
        kept = [message for message in self.messages if message.sentence != sentence]
        if len(kept) < len(self.messages):
            self.messages = kept
            self._show()

    @Slot()
    def clear(self) -> None:
        self.messages.clear()
        self._show()

    def hold(self, held: bool) -> None:
        """A notice under the pointer or with the focus stays."""
        current = self.current
        if held:
            self._timer.stop()
        elif current is not None and not current.error:
            self._timer.start()

    @Slot()
    def _on_time(self) -> None:
        if self.current is not None and not self.current.error:
            self.dismiss()

    def _show(self) -> None:
        self._timer.stop()
        self.hold(False)
        self.changed.emit()
