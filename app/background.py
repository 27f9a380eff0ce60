"""Long work beside the window: one thread, one control, one mailbox, whatever it computes.

Runs (`app.runs`) share the mailbox and the closing; everything else is a job of a page.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.tasks import details_of, sentence_of
from engine.spec.control import RunControl

# What the worker leaves for the screen: the latest picture, every number, rare events.
#
# A queued signal per iteration would flood the event loop of a fast solver; here the worker
# overwrites, and the screen takes what is there when it is ready to draw.


@dataclass
class Mail:
    """Everything since the last drain; ``frames`` holds only the newest one of each run."""

    events: list[Any] = field(default_factory=list)
    scalars: list[tuple[str, dict[str, float]]] = field(default_factory=list)
    frames: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.events or self.scalars or self.frames)


class Mailbox:
    """One slot per run for its newest frame, and lists that grow until drained."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mail = Mail()

    def put_frame(self, run_id: str, frame: Any) -> None:
        with self._lock:
            self._mail.frames[run_id] = frame

    def add_scalars(self, run_id: str, values: dict[str, float]) -> None:
        with self._lock:
            self._mail.scalars.append((run_id, values))

    def post(self, event: Any) -> None:
        with self._lock:
            self._mail.events.append(event)

    def has_frame(self, run_id: str) -> bool:
        """Whether the newest frame still waits to be drawn."""
        with self._lock:
            return run_id in self._mail.frames

    def drain(self) -> Mail:
        with self._lock:
            mail, self._mail = self._mail, Mail()
        return mail


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
    folder: Path | None = None
    figures: tuple[Path, ...] = ()
    sentence: str = ""
    details: str = ""
    result: Any = None


@dataclass(frozen=True)
class Step:
    """How far it is; ``words`` say what is being computed."""

    words: str
    fraction: float
    seconds_left: float | None = None


@dataclass(frozen=True)
class Table:
    """The engine's table as text; ``worded`` columns hold words, the others numbers.

    ``folders`` are where the files of each row lie, where rows have any.
    """

    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    worded: frozenset[int] = frozenset()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobRequest:
    """The engine's own ``request`` and the ``folder`` of its results.

    ``fault`` says why it cannot start; empty when it can.
    """

    folder: str
    request: Any = None
    overwrite: bool = False
    fault: str = ""


class Worker:
    """A thread that computes and leaves what it has to say in the mailbox; it is free of Qt.

    The thread is a daemon: a program that dies does not wait for it, and what was finished is on
    the disk.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def request_close(self) -> None:
        raise NotImplementedError

    def close(self, timeout_seconds: float = 10.0) -> bool:
        """``request_close`` and wait, without an event loop; whether the thread has ended."""
        self.request_close()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        return not self.alive


class Presenter(QObject):
    """Empties the mailbox now and then and tells the views, in the GUI thread, what is new."""

    state_changed = Signal(str)
    closed = Signal()  # the thread has ended

    def __init__(self, worker: Worker, drain_ms: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.worker, self.mailbox = worker, worker.mailbox
        self.state = IDLE
        self._closing = False
        self._timer = QTimer(self)
        self._timer.setInterval(drain_ms)
        self._timer.timeout.connect(self._drain)

    @property
    def busy(self) -> bool:
        return self.state != IDLE

    def take(self, mail: Mail) -> None:
        raise NotImplementedError

    @Slot()
    def request_close(self) -> None:
        """End everything without blocking; ``closed`` follows when the thread is gone.

        It is waited for: torch aborts a program that ends while a thread still computes.
        """
        self._closing = True
        self.worker.request_close()
        if self.busy:
            self._set_state(ENDING)
        self._timer.start()

    @Slot()
    def _drain(self) -> None:
        gone = not self.worker.alive  # asked first: what it left is then all there is
        self.take(self.mailbox.drain())
        if self._closing and gone:
            self._timer.stop()
            self._set_state(IDLE)
            self.closed.emit()

    def _set_state(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)


Work = Callable[[Any, RunControl, Mailbox], Ended]


class JobPresenter(Presenter):
    """Starts and cancels one job at a time. ``state`` is 'idle', 'running' or 'ending'.

    ``work`` is called in a thread and imports the engine there; a request knows its own
    ``fault``. ``going_on`` is said to whoever would start another; ``blocked`` says why none can
    start because of something else that computes.
    """

    blocked_changed = Signal()
    begun = Signal(object)  # Begun
    stepped = Signal(object)  # Step
    table_changed = Signal(object)  # Table
    ended = Signal(object)  # Ended

    worker: JobWorker

    def __init__(
        self, work: Work, name: str, going_on: str = "", parent: QObject | None = None
    ) -> None:
        super().__init__(JobWorker(Mailbox(), work, name), DRAIN_MS, parent)
        self.going_on, self.blocked = going_on, ""
        self.request: Any = None  # the newest

    @property
    def occupied(self) -> str:
        """Why nothing can start now, whatever is asked for; empty when something can."""
        return self.going_on if self.busy else self.blocked

    def reason(self, request: Any) -> str:
        """Why this cannot start now; empty when it can."""
        return self.occupied or str(request.fault)

    def start(self, request: Any) -> None:
        if self.reason(request) or self._closing:
            return
        self.mailbox.drain()
        self.request = request
        self.worker.start(request)
        self._set_state(RUNNING)
        self._timer.start()

    @Slot()
    def cancel(self) -> None:
        """End after the iteration it is in; what is done stays."""
        if self.busy:
            self.worker.request_close()
            self._set_state(ENDING)

    def set_blocked(self, reason: str) -> None:
        self.blocked = reason
        self.blocked_changed.emit()

    @Slot()
    def request_close(self) -> None:
        super().request_close()
        self._drain()

    def take(self, mail: Mail) -> None:
        for event in mail.events:
            if isinstance(event, Begun):
                self.begun.emit(event)
        for slot, signal in ((STEP, self.stepped), (TABLE, self.table_changed)):
            if slot in mail.frames:
                signal.emit(mail.frames[slot])
        for event in mail.events:
            if isinstance(event, Ended):
                if not self._closing:
                    self._timer.stop()
                self._set_state(IDLE)
                self.ended.emit(event)


class JobWorker(Worker):
    """One request at a time, each in a thread of its own."""

    def __init__(self, mailbox: Mailbox, work: Work, name: str) -> None:
        super().__init__(mailbox)
        self.work, self.name = work, name
        self._control = RunControl()

    def start(self, request: Any) -> None:
        self._control = RunControl()
        self._thread = threading.Thread(
            target=self._work, args=(request, self._control), name=self.name, daemon=True
        )
        self._thread.start()

    def request_close(self) -> None:
        self._control.cancel()

    def _work(self, request: Any, control: RunControl) -> None:
        try:
            ended = self.work(request, control, self.mailbox)
        except Exception as error:  # a bug must reach the person, not die with the thread
            sentence, details = sentence_of(error), details_of(error)
            ended = Ended("failed", sentence=sentence, details=details)
        self.mailbox.post(ended)
