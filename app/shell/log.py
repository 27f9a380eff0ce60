"""The log: the last lines in memory, all of them in a file, nothing about patients in either."""

from __future__ import annotations

import contextlib
import itertools
import logging
import logging.handlers
import queue
import time
import traceback
from collections import deque
from pathlib import Path
from typing import Any, Final, NamedTuple

from PySide6.QtCore import QObject, QtMsgType, Signal, qInstallMessageHandler

from app.shell.privacy import clean
from engine.files.folders import state_folder

KEPT_LINES: Final = 2000
FILE_BYTES: Final = 2_000_000
FILES: Final = 3  # the current one and two older ones
FILE_NAME: Final = "dualscope.log"
QT_LEVELS: Final = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class LogLine(NamedTuple):
    number: int  # of this session, from 0
    when: float
    level: int
    source: str
    text: str

    @property
    def level_name(self) -> str:
        return logging.getLevelName(self.level).lower()

    @property
    def clock(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self.when))

    def __str__(self) -> str:
        return f"{self.clock}  {self.level_name:8}  {self.source}: {self.text}"


class LogBook(QObject):
    """Hears Python's logging and warnings and Qt's messages from `start` until `close`.

    The file is written in a thread of its own: a slow disk must not hold up the window.
    """

    grown = Signal()  # new lines; not again until they were taken with `after`

    def __init__(self, folder: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder = folder or state_folder() / "log"
        self.problem = ""  # why there is no file, or empty
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._numbers = itertools.count()
        self._told = False
        self._handler = _Handler(self)
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._file: logging.Handler | None = None
        self._listener: logging.handlers.QueueListener | None = None
        self._qt_before: Any = None
        self._level_before: int | None = None

    def start(self) -> None:
        root = logging.getLogger()
        self._level_before = root.level
        root.setLevel(logging.INFO)
        root.addHandler(self._handler)
        logging.captureWarnings(True)
        self._qt_before = qInstallMessageHandler(_on_qt_message)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = _file_handler(self.folder / FILE_NAME)
        except OSError as error:
            self.problem = f"There is no log file: {error.strerror or error}."
            logging.getLogger(__name__).warning(self.problem)
            return
        self._listener = logging.handlers.QueueListener(self._queue, self._file)
        self._listener.start()

    def close(self) -> None:
        """All lines are in the file afterwards, and everything is as before `start`."""
        if self._level_before is None:
            return
        qInstallMessageHandler(self._qt_before)
        logging.captureWarnings(False)
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._level_before)
        self._level_before = None
        if self._listener is not None:
            self._listener.stop()
            self._listener = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def after(self, number: int) -> list[LogLine]:
        """Lines with a larger number; -1 for all that are kept."""
        self._told = False
        return [line for line in list(self._lines) if line.number > number]

    def last(self, count: int) -> list[LogLine]:
        return list(self._lines)[-count:]

    def add(self, record: logging.LogRecord) -> None:
        """Any thread; logging calls it for one record at a time."""
        text = clean(_words(record))
        line = LogLine(next(self._numbers), record.created, record.levelno, record.name, text)
        self._lines.append(line)
        if self._listener is not None:
            written = logging.LogRecord(record.name, record.levelno, "", 0, text, None, None)
            written.created, written.msecs = record.created, record.msecs
            self._queue.put(written)
        if not self._told:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the object may be gone at the very end
                self.grown.emit()


class _Handler(logging.Handler):
    def __init__(self, book: LogBook) -> None:
        super().__init__()
        self.book = book

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.book.add(record)
        except Exception:
            self.handleError(record)


def _words(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # arguments that do not fit must not lose the line
        text = str(record.msg)
    if record.exc_info and record.exc_info[1] is not None:
        text += "\n" + "".join(traceback.format_exception(record.exc_info[1]))
    return text.rstrip()


def _on_qt_message(kind: QtMsgType, context: Any, message: str) -> None:
    logging.getLogger("qt").log(QT_LEVELS.get(kind, logging.WARNING), "%s", message)


def _file_handler(path: Path) -> logging.Handler:
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=FILE_BYTES, backupCount=FILES - 1, encoding="utf-8", errors="replace"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # a full disk, or a second window that rotates: the lines in memory are still there
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    return handler
