"""Short work off the GUI thread - opening, previews, exporting - with its answer back on it.

Runs have a thread of their own (`app.runs`), so that a file can be opened while one goes on.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
