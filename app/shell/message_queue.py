"""The messages that wait to be read. No widgets here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

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
