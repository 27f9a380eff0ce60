"""When something escapes: a report in a file, one message on the screen, and on it goes."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

import engine
from app.shell.log import LogBook
from app.shell.privacy import clean
from app.widgets import in_column
from engine.files.atomic import write_bytes_atomic
from engine.files.folders import state_folder

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


MOST_REPORTS: Final = 20  # older ones are removed
PREFIX: Final = "crash-"
RUNNING: Final = "running-"  # faulthandler writes here; gone after a clean end
SHOWN: Final = "shown.txt"
LARGEST: Final = 1 << 20
# what faulthandler begins with, on every system
FATAL: Final = ("Fatal Python error", "Windows fatal exception")


def versions() -> dict[str, str]:
    """Of the program and what it stands on; torch only when it was loaded."""
    found = {"Dualscope": engine.__version__, "Python": platform.python_version()}
    for name in ("PySide6-Essentials", "pyqtgraph", "numpy", "pydicom"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    torch = sys.modules.get("torch")
    found["torch"] = str(getattr(torch, "__version__", "not loaded"))
    return found


def report_text(what: str, trace: str, device: str, log: Sequence[object] = ()) -> str:
    """Traces hold no local variables; paths and names are taken out of everything."""
    numbers = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "Dualscope crash report",
        f"Time      {time.strftime('%Y-%m-%d %H:%M:%S %z')}",
        f"Where     {what}",
        f"Versions  {numbers}",
        f"Platform  {platform.system()} {platform.release()}, {platform.machine()}",
        f"Device    {device or 'not chosen yet'}",
        "",
        trace.rstrip(),
    ]
    if log:
        lines += ["", f"Last {len(log)} lines of the log:", *map(str, log)]
    return clean("\n".join(lines)) + "\n"


class CrashFolder:
    """The reports of this and of earlier sessions."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_folder() / "crashes"

    def write(self, text: str) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        path = self.path / f"{PREFIX}{stamp}.txt"
        number = 1
        while path.exists():
            number += 1
            path = self.path / f"{PREFIX}{stamp}-{number}.txt"
        write_bytes_atomic(path, text.encode())
        for old in self.reports()[:-MOST_REPORTS]:
            with contextlib.suppress(OSError):
                old.unlink()
        return path

    def reports(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.path.glob(f"{PREFIX}*.txt"), key=lambda path: path.stat().st_mtime_ns)

    def running_file(self) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        return self.path / f"{RUNNING}{os.getpid()}.txt"

    def collect_faults(self) -> None:
        """Make readable reports of what faulthandler left when an earlier session died."""
        for path in self.path.glob(f"{RUNNING}*.txt"):
            if path.name == f"{RUNNING}{os.getpid()}.txt":
                continue
            with contextlib.suppress(OSError), path.open("rb") as stream:
                text = stream.read(LARGEST).decode("utf-8", "replace")
                # one without a word may belong to another window that is open now
                if any(word in text for word in FATAL):
                    stream.close()
                    self.write(clean(text))
                    path.unlink()

    def unshown(self) -> Path | None:
        """The newest report nobody has been told about."""
        shown = self._shown()
        fresh = [path for path in self.reports() if path.name not in shown]
        return fresh[-1] if fresh else None

    def mark_shown(self) -> None:
        names = [path.name for path in self.reports()]
        if names and not set(names) <= self._shown():
            write_bytes_atomic(self.path / SHOWN, "\n".join(names).encode())

    def _shown(self) -> set[str]:
        try:
            return set((self.path / SHOWN).read_text(encoding="utf-8").split())
        except (OSError, ValueError):
            return set()


class DetailsDialog(QDialog):
    """Not modal: a run goes on while its owner reads; deletes itself when closed."""

    def __init__(self, sentence: str, details: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Details")
        self.setModal(False)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.sentence = QLabel(sentence, self)
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        self.text = QPlainTextEdit(details, self)
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName("Details")
        self.text.setToolTip("What the program knows about it; select any part to copy it.")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        self.copyButton = QPushButton("Copy", self)
        self.copyButton.setAutoDefault(False)
        self.copyButton.setAccessibleName("Copy the sentence and the details")
        self.copyButton.setToolTip("Copy the sentence and all details to the clipboard.")
        self.copyButton.clicked.connect(self.copy)
        buttons.addButton(self.copyButton, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.button(QDialogButtonBox.StandardButton.Close).setToolTip("Close this window.")
        buttons.rejected.connect(self.reject)
        in_column(self.sentence, (self.text, 1), buttons, spacing=8, margins=16, parent=self)
        self.resize(720, 440)

    @Slot()
    def copy(self) -> None:
        whole = f"{self.sentence.text()}\n\n{self.text.toPlainText()}"
        QGuiApplication.clipboard().setText(whole)
