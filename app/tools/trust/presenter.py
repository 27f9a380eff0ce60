"""Between the thread that answers a question and the window: takes what is new, and tells it."""

from __future__ import annotations

import threading
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.runs.mailbox import Mailbox
from app.tasks import details_of, sentence_of
from app.tools.trust.model import CERTIFICATE, PULL, SPLIT, STEP, Ended, Question, Step
from engine.spec.control import RunControl

DRAIN_MS: Final = 50
IDLE, RUNNING, ENDING = "idle", "running", "ending"


class TrustPresenter(QObject):
    """One question at a time, in a thread of its own. ``state`` is one of the words above."""

    state_changed = Signal(str)
    stepped = Signal(object)  # Step
    ended = Signal(object)  # Ended
    closed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.mailbox = Mailbox()
        self.state = IDLE
        self.question: Question | None = None  # the newest
        self._control = RunControl()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._timer = QTimer(self)
        self._timer.setInterval(DRAIN_MS)
        self._timer.timeout.connect(self._drain)

    @property
    def busy(self) -> bool:
        return self.state != IDLE

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, question: Question) -> None:
        if self.busy or self._closing:
            return
        self.question, self._control = question, RunControl()
        self.mailbox.drain()
        self._thread = threading.Thread(
            target=self._work, args=(question, self._control), name="trust", daemon=True
        )
        self._thread.start()
        self._set_state(RUNNING)
        self._timer.start()

    def end(self, timeout_seconds: float = 10.0) -> None:
        """Stop and wait, without an event loop: when the display has gone."""
        self._control.cancel()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    @Slot()
    def stop(self) -> None:
        """End after the iteration it is in; seeds that are done are kept."""
        if self.busy:
            self._control.cancel()
            self._set_state(ENDING)

    def request_close(self) -> None:
        """End without blocking; ``closed`` follows when the thread is gone.

        It is waited for: torch aborts a program that ends while a thread still computes.
        """
        self._closing = True
        self.stop()
        self._timer.start()
        self._drain()

    def _work(self, question: Question, control: RunControl) -> None:
        try:
            ended = find_out(question, control, self.mailbox)
        except Exception as error:  # a bug must reach the person, not die with the thread
            sentence, details = sentence_of(error), details_of(error)
            ended = Ended(question, None, sentence=sentence, details=details)
        self.mailbox.post(ended)

    @Slot()
    def _drain(self) -> None:
        gone = not self.alive  # asked first: what it left is then all there is
        mail = self.mailbox.drain()
        if STEP in mail.frames:
            self.stepped.emit(mail.frames[STEP])
        for ended in mail.events:
            self._set_state(IDLE)
            self.ended.emit(ended)
        if gone:
            self._timer.stop()
            if self._closing:
                self.closed.emit()

    def _set_state(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)


def find_out(question: Question, control: RunControl, mailbox: Mailbox) -> Ended:
    """From a question to its answer, in the worker's thread: torch comes along."""
    from engine.workflows.trust import slices

    def progress(fraction: float, words: str) -> None:
        mailbox.put_frame(STEP, Step(fraction, words))

    if question.kind == PULL and question.gap is not None:
        return Ended(question, slices.pull_of(question.gap, question.unit))
    assert question.record_path is not None
    run = slices.open_slice(question.record_path, question.job, question.slice)
    answer: slices.Answer | None
    if question.kind == SPLIT:
        answer = slices.split(run, control, progress)
    elif question.kind == CERTIFICATE:
        answer = slices.certificate(run)
    elif question.kind == PULL:
        answer = slices.pull(run, control, progress)
    else:
        answer = slices.spread(run, question.seeds, control, progress)
    return Ended(question, answer, control.cancelled)
