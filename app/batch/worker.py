"""The thread of an experiment; free of Qt, it speaks through the mailbox."""

from __future__ import annotations

import threading
from pathlib import Path

from app.batch.model import BatchRequest, Ended, on_screen
from app.batch.stop import Stop
from app.runs.mailbox import Mailbox
from app.tasks import details_of, sentence_of


class BatchWorker:
    """One experiment at a time, each in a thread of its own.

    The thread is a daemon: a program that dies does not wait for it, and every finished case is
    on the disk.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self._thread: threading.Thread | None = None
        self._stop = Stop()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, request: BatchRequest) -> None:
        self._stop = Stop()
        self._thread = threading.Thread(
            target=self._work, args=(request, self._stop), name="experiment", daemon=True
        )
        self._thread.start()

    def cancel(self) -> None:
        """End after the iteration it is in; the cases that are done stay."""
        self._stop.press()

    def end(self, timeout_seconds: float = 10.0) -> None:
        """Cancel and wait, without an event loop: when the display has gone."""
        self.cancel()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def _work(self, request: BatchRequest, stop: Stop) -> None:
        try:
            from app.batch.work import run_experiment

            ended = run_experiment(request, stop, self.mailbox)
        except Exception as error:  # a bug must reach the person, not die with the thread
            sentence = on_screen(sentence_of(error))
            ended = Ended("failed", Path(request.folder), (), sentence, details_of(error))
        self.mailbox.post(ended)
