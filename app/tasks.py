"""Short work off the GUI thread - opening, previews, exporting - with its answer back on it.

Runs have a thread of their own (`app.runs`), so that a file can be opened while one goes on.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.forms.labels import on_screen
from engine.spec.errors import DualscopeError, as_user_error, bug_message

Done = Callable[[Any], None]
Failed = Callable[[str, str], None]


class Tasks(QObject):
    """Starts functions in a worker thread; one after the other, in the order asked.

    Parameters
    ----------
    loop
        The application's event loop (qasync's), on which the answers arrive.
    """

    failed = Signal(str, str)  # one sentence, details; of tasks without a handler of their own
    busy_changed = Signal(str)  # what is being done, '' when nothing is

    def __init__(self, loop: asyncio.AbstractEventLoop, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._loop = loop
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="dualscope-tasks")
        self._waiting: dict[asyncio.Future[Any], str] = {}
        self._closed = False

    @property
    def busy(self) -> str:
        return next(iter(self._waiting.values()), "")

    def start(
        self, words: str, work: Callable[[], Any], done: Done, failed: Failed | None = None
    ) -> asyncio.Future[Any] | None:
        """Run ``work``; then ``done`` with what it returned, or ``failed`` with why not.

        ``words`` say what is being done. `cancel` of the answer keeps both from being called.
        """
        if self._closed:
            return None
        future = asyncio.wrap_future(self._pool.submit(work), loop=self._loop)
        self._waiting[future] = words
        future.add_done_callback(partial(self._finish, done, failed))
        self.busy_changed.emit(self.busy)
        return future

    def _finish(self, done: Done, failed: Failed | None, future: asyncio.Future[Any]) -> None:
        self._waiting.pop(future, None)
        if not self._closed:
            self.busy_changed.emit(self.busy)
        if future.cancelled():
            return
        error = future.exception()
        if self._closed:
            return
        if error is None:
            done(future.result())
        else:
            (failed or self.failed.emit)(sentence_of(error), details_of(error))

    def close(self) -> None:
        """What has not begun is dropped; what runs is waited for."""
        self._closed = True
        for future in list(self._waiting):
            future.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)


def sentence_of(error: BaseException) -> str:
    """What a person is told; the details say the rest."""
    known = as_user_error(error) if isinstance(error, Exception) else error
    return on_screen(known) if isinstance(known, DualscopeError) else bug_message(error)


def details_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


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
        self._request: _Request | None = None  # what is running

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
        self._waiting = self._request = None
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    def _start(self, request: _Request) -> None:
        # what has ended cannot be cancelled any more: it may still answer after it was dropped
        def done(answer: Any) -> None:
            if self._request is not request:
                return
            self._running = None
            request.done(answer)
            self._next()

        def failed(sentence: str, details: str) -> None:
            if self._request is not request:
                return
            self._running = None
            (request.failed or self.tasks.failed.emit)(sentence, details)
            self._next()

        self._request = request
        self._running = self.tasks.start(request.words, request.work, done, failed)

    def _next(self) -> None:
        # what was called back may have asked for more, or dropped everything
        if self._running is None and self._waiting is not None:
            request, self._waiting = self._waiting, None
            self._start(request)
