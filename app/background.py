"""Long work beside the window: one thread, one control, one mailbox, whatever it computes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.runs.mailbox import Mailbox
from app.tasks import details_of, sentence_of
from engine.spec.control import RunControl

DRAIN_MS: Final = 50
IDLE, RUNNING, ENDING = "idle", "running", "ending"
TABLE, STEP = "table", "step"  # slots of the mailbox, where only the newest one counts


@dataclass(frozen=True)
class Begun:
    """The inputs are read; ``notes`` say what had to be left out."""

    cases: int
    done: int  # by an earlier start
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """``status`` is 'done', 'cancelled' or 'failed', then with a ``sentence``."""

    status: str
    folder: Path
    figures: tuple[Path, ...] = ()
    sentence: str = ""
    details: str = ""


@dataclass(frozen=True)
class Step:
    """How far it is; ``words`` say what is being computed."""

    words: str
    fraction: float
    seconds_left: float | None = None


@dataclass(frozen=True)
class Table:
    """The engine's table as text; ``worded`` columns hold words, the others numbers."""

    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    worded: frozenset[int] = frozenset()


Work = Callable[[Any, RunControl, Mailbox], Ended]


class BatchPresenter(QObject):
    """Starts and cancels the work. ``state`` is 'idle', 'running' or 'ending'.

    ``blocked`` says why none can start because of something else that computes. A subclass has
    another ``work``; a request knows its own ``fault``.
    """

    state_changed = Signal(str)
    blocked_changed = Signal()
    begun = Signal(object)  # Begun
    stepped = Signal(object)  # Step
    table_changed = Signal(object)  # Table
    ended = Signal(object)  # Ended
    closed = Signal()

    GOING_ON: ClassVar[str] = "Something is going on: wait, or cancel it first."

    def __init__(self, work: Work, name: str, parent: QObject | None = None) -> None:
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
            return self.GOING_ON
        return self.blocked or str(request.fault)

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


class BatchWorker:
    """One request at a time, each in a thread of its own.

    ``work`` is called there and imports the engine; a request names the ``folder`` of its results.

    The thread is a daemon: a program that dies does not wait for it, and every finished case is
    on the disk.
    """

    def __init__(self, mailbox: Mailbox, work: Work, name: str) -> None:
        self.mailbox, self.work, self.name = mailbox, work, name
        self._thread: threading.Thread | None = None
        self._control = RunControl()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, request: Any) -> None:
        self._control = RunControl()
        self._thread = threading.Thread(
            target=self._work, args=(request, self._control), name=self.name, daemon=True
        )
        self._thread.start()

    def cancel(self) -> None:
        """End after the iteration it is in; the cases that are done stay."""
        self._control.cancel()

    def end(self, timeout_seconds: float = 10.0) -> None:
        """Cancel and wait, without an event loop: when the display has gone."""
        self.cancel()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def _work(self, request: Any, control: RunControl) -> None:
        try:
            ended = self.work(request, control, self.mailbox)
        except Exception as error:  # a bug must reach the person, not die with the thread
            sentence, details = sentence_of(error), details_of(error)
            ended = Ended("failed", Path(request.folder), (), sentence, details)
        self.mailbox.post(ended)
