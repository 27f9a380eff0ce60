"""When something escapes: a report in a file, one message on the screen, and on it goes."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import sys
import threading
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from PySide6.QtCore import QObject, Signal

from app.shell.crash_report import CrashFolder, report_text
from app.shell.log import LogBook
from app.shell.privacy import clean

LOG_LINES: Final = 50
AGAIN_S: Final = 1.0  # the same fault is not told more often: a paint event may repeat it
MOST_PER_SESSION: Final = 20

log = logging.getLogger("app.crash")


class CrashGuard(QObject):
    """Catches what nobody else did, in any thread, from `install` until `close`.

    ``crashed`` may be emitted in any thread: connect slots of objects of the GUI thread, which
    Qt then calls there. ``device`` goes into the reports; set it when it is known.
    """

    crashed = Signal(str, str)  # one sentence, the report

    def __init__(
        self,
        book: LogBook | None = None,
        folder: CrashFolder | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.book = book
        self.folder = folder or CrashFolder()
        self.device = ""
        self._told: dict[tuple[str, str], float] = {}
        self._reports: dict[tuple[str, str], Path | None] = {}
        self._lock = threading.RLock()
        self._before: tuple[Any, Any, Any] | None = None
        self._faults: IO[str] | None = None
        self._fault_path: Path | None = None

    def install(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread
        sys.unraisablehook = self._on_unraisable
        if loop is not None:
            loop.set_exception_handler(self._on_loop)
        self._watch_for_faults()

    def close(self) -> None:
        """A clean end: whatever happened in this session has been told."""
        if self._before is None:
            return
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._before
        self._before = None
        if self._faults is not None:
            faulthandler.disable()
            self._faults.close()
            self._faults = None
        with contextlib.suppress(Exception):
            if self._fault_path is not None:
                self._fault_path.unlink(missing_ok=True)
            self.folder.mark_shown()

    def last_crash(self) -> Path | None:
        """A report of an earlier session that nobody was told about; named only once."""
        try:
            self.folder.collect_faults()
            found = self.folder.unshown()
            self.folder.mark_shown()
        except Exception:
            log.exception("The crash reports could not be read.")
            return None
        return found

    def report(self, error: BaseException, where: str) -> None:
        """Write and tell; never raises, whatever state the program is in."""
        try:
            self._report(error, where)
        except Exception:
            with contextlib.suppress(Exception):
                log.exception("A crash report could not be written.")

    def _report(self, error: BaseException, where: str) -> None:
        trace = clean("".join(traceback.format_exception(error)))
        key = (type(error).__name__, _place(error))
        with self._lock:
            now = time.monotonic()
            if now - self._told.get(key, -AGAIN_S) < AGAIN_S:
                return
            self._told[key] = now
            lines = self.book.last(LOG_LINES) if self.book is not None else []
            text = report_text(where, trace, self.device, lines)
            log.error("%s", trace)
            if sys.stderr is not None:
                sys.stderr.write(trace)
            if key not in self._reports and len(self._reports) < MOST_PER_SESSION:
                self._reports[key] = self._write(text)
            path = self._reports.get(key)
        kept = f"; the report is {path.name}" if path is not None else ""
        self.crashed.emit(f"A fault in Dualscope ({key[0]}) stopped what it was doing{kept}.", text)

    def _write(self, text: str) -> Path | None:
        try:
            return self.folder.write(text)
        except Exception:  # a full disk: the message on the screen still holds the report
            log.exception("The crash report could not be saved.")
            return None

    def _watch_for_faults(self) -> None:
        """Faults of native code end the program: their trace is found at the next start."""
        try:
            self._fault_path = self.folder.running_file()
            self._faults = self._fault_path.open("w", encoding="utf-8")
            self._faults.write(report_text("native code", "", self.device))
            self._faults.flush()
            faulthandler.enable(self._faults)
        except Exception:
            log.exception("Faults of native code cannot be recorded.")

    def _on_exception(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            sys.__excepthook__(kind, error, trace)
        else:
            self.report(error, f"thread {threading.current_thread().name}")

    def _on_thread(self, args: Any) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            name = args.thread.name if args.thread is not None else "unknown"
            self.report(args.exc_value, f"thread {name}")

    def _on_unraisable(self, args: Any) -> None:
        # not the object itself: its text could be anything
        if args.exc_value is not None:
            self.report(args.exc_value, f"while tidying up a {type(args.object).__name__}")

    def _on_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.report(error, "event loop")
        else:
            log.error("Event loop: %s", context.get("message", "an unknown problem"))


def _place(error: BaseException) -> str:
    """File and line it was raised at: what makes two faults the same."""
    last = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        last = f"{frame.f_code.co_filename}:{line}"
    return last or str(error)
