"""Between the thread of an experiment or a folder and its page: takes what is new, and tells it."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.batch.model import STEP, TABLE, Begun, Ended
from app.batch.stop import Stop
from app.batch.worker import BatchWorker, Work
from app.runs.mailbox import Mailbox

DRAIN_MS: Final = 50
IDLE, RUNNING, ENDING = "idle", "running", "ending"


def _experiment(request: Any, stop: Stop, mailbox: Mailbox) -> Ended:
    from app.batch.work import run_experiment

    return run_experiment(request, stop, mailbox)


class BatchPresenter(QObject):
    """Starts and cancels an experiment. ``state`` is 'idle', 'running' or 'ending'.

    ``blocked`` says why none can start because of something else that computes. A subclass has
    another ``work``, and its own reasons against a request.
    """

    state_changed = Signal(str)
    blocked_changed = Signal()
    begun = Signal(object)  # Begun
    stepped = Signal(object)  # Step
    table_changed = Signal(object)  # Table
    ended = Signal(object)  # Ended
    closed = Signal()

    def __init__(
        self, parent: QObject | None = None, work: Work = _experiment, name: str = "experiment"
    ) -> None:
        super().__init__(parent)
        self.mailbox = Mailbox()
        self.worker = BatchWorker(self.mailbox, work, name)
        self.state, self.blocked = IDLE, ""
        self._closing = False
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)

    @property
    def busy(self) -> bool:
        return self.state != IDLE

    def reason(self, request: Any) -> str:
        """Why this cannot start now; empty when it can."""
        if self.busy:
            return "An experiment is going on: wait, or cancel it first."
        if self.blocked:
            return self.blocked
        if not request.experiment:
            return "The experiments are still loading."
        return "" if request.folder else "Choose a folder for the results."

    def start(self, request: Any) -> None:
        if self.reason(request) or self._closing:
            return
        self.mailbox.drain()
        self.worker.start(request)
        self._set_state(RUNNING)
        self._timer.start()

    @Slot()
    def cancel(self) -> None:
        if self.busy:
            self.worker.cancel()
            self._set_state(ENDING)

    def set_blocked(self, reason: str) -> None:
        self.blocked = reason
        self.blocked_changed.emit()

    def request_close(self) -> None:
        """End without blocking; ``closed`` follows when the thread is gone.

        It is waited for: torch aborts a program that ends while a thread still computes.
        """
        self._closing = True
        self.cancel()
        self._timer.start()
        self._drain()

    @Slot()
    def _drain(self) -> None:
        ended = not self.worker.alive  # asked first: what it left is then all there is
        mail = self.mailbox.drain()
        for event in mail.events:
            if isinstance(event, Begun):
                self.begun.emit(event)
        for slot, signal in ((STEP, self.stepped), (TABLE, self.table_changed)):
            if slot in mail.frames:
                signal.emit(mail.frames[slot])
        for event in mail.events:
            if isinstance(event, Ended):
                self._set_state(IDLE)
                self.ended.emit(event)
        if ended:
            self._timer.stop()
            if self._closing:
                self.closed.emit()

    def _set_state(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)
