"""Starts the workstation: ``dualscope gui [PATH] [--demo ct|mri]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.spec.errors import DualscopeError, RequestError

if TYPE_CHECKING:
    from app.window import MainWindow


DISPLAY_GONE = (
    "The display has gone, so the window is closed; a run that was going on is saved as cancelled."
)


def display_missing() -> bool:
    """Whether Qt would find nothing to draw on (Linux without X11 and Wayland)."""
    named = os.environ.get("QT_QPA_PLATFORM")
    screens = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform.startswith("linux") and not named and not screens


def main(options: argparse.Namespace) -> int:
    if options.demo not in (None, "ct", "mri"):
        raise RequestError(f"⟦demo⟧ is ct or mri, not '{options.demo}'.")
    if options.path and options.demo:
        raise RequestError("Give a PATH or ⟦demo⟧, not both.")
    if display_missing():
        raise RequestError(
            "There is no display to open the workstation on: use dualscope reconstruct, "
            "or python -m app.tour FOLDER for pictures of it."
        )
    return run(options.path or (f"demo:{options.demo}" if options.demo else None))


def run(text: str | None) -> int:
    # An exception in the midst of Qt's making would crash it: whoever asks early is heard later.
    early: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: early.append(number))

    import qasync
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from app.shell.crash import CrashGuard
    from app.shell.log import LogBook
    from app.shell.settings import AppSettings
    from app.tasks import Tasks
    from app.theme import Theme
    from app.window import MainWindow
    from engine.files.folders import state_folder

    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("Dualscope")
    app.setQuitOnLastWindowClosed(False)  # the window ends its runs first, then says so
    loop = qasync.QEventLoop(app)
    tasks = Tasks(loop)
    settings = AppSettings(tasks=tasks)
    theme = Theme(app, settings.get("theme"))
    book = LogBook()
    book.start()
    guard = CrashGuard(book)
    earlier = guard.last_crash()
    guard.install(loop)
    window = MainWindow(tasks, settings, theme, state_folder() / "runs", book)
    guard.crashed.connect(window.messages.error)
    closed: list[bool] = []
    window.gone.connect(lambda: closed.append(True))
    window.gone.connect(loop.stop)
    if settings.problem:
        window.messages.notice(settings.problem)
    if earlier is not None:
        window.messages.error("Dualscope ended badly the last time.", earlier.read_text("utf-8"))
    heartbeat = QTimer()  # Python sees a signal only when some of its code runs
    heartbeat.timeout.connect(lambda: None)
    heartbeat.start(200)
    window.show()
    app.processEvents()  # drawn before torch takes the interpreter for a second or two
    window.load_engine()
    if text is not None:
        open_named(window, text)
    window.run_library.tidy()
    window.first_tour()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: window.close())
    if early:
        QTimer.singleShot(0, window.close)
    with loop:
        loop.run_forever()
    heartbeat.stop()
    if not closed:  # Qt ends the loop by itself when the display has gone
        for page in window.pages:
            page.presenter.worker.close()
        window.runs.worker.close()
    tasks.close()
    if window.context.run_library is not None:
        window.context.run_library.close()
    guard.close()
    book.close()
    if not closed:
        raise DualscopeError(DISPLAY_GONE)
    return 0


def open_named(window: MainWindow, text: str) -> None:
    """Data, or a workspace: a file manager hands over either."""
    from app.workspace.file import SUFFIX

    if text.endswith(SUFFIX):
        window.workspaces.open(Path(text).absolute())
    else:
        window.data.open(text)
