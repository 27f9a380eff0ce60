"""One request at a time; of those that come meanwhile only the newest is carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.tasks import Done, Failed, Tasks


@dataclass(frozen=True)
class _Request:
    words: str
    work: Callable[[], Any]
    done: Done
    failed: Failed | None


class Newest:
    """Keeps a fast hand from queueing a hundred reads.

    What has begun is finished and answered; what waits is replaced by what is asked next.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self._running: asyncio.Future[Any] | None = None
        self._waiting: _Request | None = None

    @property
    def waiting(self) -> bool:
        """Whether something newer than what is being done was asked for."""
        return self._waiting is not None

    @property
    def busy(self) -> bool:
        return self._running is not None

    def ask(
        self, words: str, work: Callable[[], Any], done: Done, failed: Failed | None = None
    ) -> None:
        request = _Request(words, work, done, failed)
        if self._running is None:
            self._start(request)
        else:
            self._waiting = request

    def drop(self) -> None:
        """Nothing asked so far is answered any more."""
        self._waiting = None
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    def _start(self, request: _Request) -> None:
        def done(answer: Any) -> None:
            self._running = None
            request.done(answer)
            self._next()

        def failed(sentence: str, details: str) -> None:
            self._running = None
            (request.failed or self.tasks.failed.emit)(sentence, details)
            self._next()

        self._running = self.tasks.start(request.words, request.work, done, failed)

    def _next(self) -> None:
        # what was called back may have asked for more, or dropped everything
        if self._running is None and self._waiting is not None:
            request, self._waiting = self._waiting, None
            self._start(request)
