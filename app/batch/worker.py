"""The thread of an experiment, or of a folder; free of Qt, it speaks through the mailbox."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.batch.model import Ended, on_screen
from app.batch.stop import Stop
from app.runs.mailbox import Mailbox
from app.tasks import details_of, sentence_of

Work = Callable[[Any, Stop, Mailbox], Ended]


class BatchWorker:
    """One request at a time, each in a thread of its own.

    ``work`` is called there and imports the engine; a request names the ``folder`` of its results.

    The thread is a daemon: a program that dies does not wait for it, and every finished case is
    on the disk.
    """

    def __init__(self, mailbox: Mailbox, work: Work, name: str) -> None:
        self.mailbox, self.work, self.name = mailbox, work, name
        self._thread: threading.Thread | None = None
        self._stop = Stop()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, request: Any) -> None:
        self._stop = Stop()
        self._thread = threading.Thread(
            target=self._work, args=(request, self._stop), name=self.name, daemon=True
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

    def _work(self, request: Any, stop: Stop) -> None:
        try:
            ended = self.work(request, stop, self.mailbox)
        except Exception as error:  # a bug must reach the person, not die with the thread
            sentence = on_screen(sentence_of(error))
            ended = Ended("failed", Path(request.folder), (), sentence, details_of(error))
        self.mailbox.post(ended)
