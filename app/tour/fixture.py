"""The real window as the program opens it, in folders of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType

import qasync
from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtWidgets import QApplication

from app.shell.log import LogBook
from app.shell.settings import AppSettings
from app.tasks import Tasks
from app.theme import Theme
from app.tour.user_input import wait
from app.window import MainWindow
from engine.files.folders import state_folder

VARIABLES = ("DUALSCOPE_CONFIG", "DUALSCOPE_STATE")


class Stage:
    """Opens the window and closes it again; a person's settings are neither used nor changed.

    Settings and runs go below ``home`` and stay there; without one they go with the window.
    """

    def __init__(self, size: QSize, home: Path | None = None) -> None:
        self.size, self.home = size, home

    def __enter__(self) -> Stage:
        self._folder = None if self.home else tempfile.TemporaryDirectory(prefix="dualscope-tour-")
        self.folder = self.home or Path(self._folder.name if self._folder else "")
        self._before = {name: os.environ.get(name) for name in VARIABLES}
        for name in VARIABLES:
            os.environ[name] = str(self.folder / name.lower())
        app = QApplication.instance() or QApplication(["dualscope"])
        assert isinstance(app, QApplication)
        app.setApplicationName("Dualscope")
        self._quits = app.quitOnLastWindowClosed()
        app.setQuitOnLastWindowClosed(False)
        self.app = app
        self._loop = qasync.QEventLoop(app)
        self._tasks = Tasks(self._loop)
        settings = AppSettings(tasks=self._tasks)
        self._theme = Theme(app, "dark")
        self._book = LogBook()
        self._book.start()
        self.window = MainWindow(
            self._tasks, settings, self._theme, state_folder() / "runs", self._book
        )
        self.window.resize(self.size)
        self.window.show()
        self.window.load_engine()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        gone: list[bool] = []
        self.window.gone.connect(lambda: gone.append(True))
        self.window.close()
        wait(lambda: gone, "the window closes")
        self._tasks.close()
        self._loop.close()
        if self.window.context.run_library is not None:
            self.window.context.run_library.close()
        self._book.close()
        self.window.deleteLater()
        self._theme.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.app.setQuitOnLastWindowClosed(self._quits)
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if self._folder is not None:
            self._folder.cleanup()
