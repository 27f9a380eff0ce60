"""One window for the whole soak: how its tasks use it, and what they all look out for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QCoreApplication, QEvent, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QDialog

from app.runs.store import RunEntry
from app.session.panes import REFERENCE
from app.tour.user_input import click, wait
from app.window import MainWindow
from soak.tally import BUG, Mark
from soak.temp_dirs import room

MOST_RUNS, KEPT_RUNS = 8, 3  # a person deletes runs, too
HU: Final = {"unit": "hu", "pixel_mm": 6.0}
NO_SCREEN: Final = "This plugin does not support"  # Qt without a display, of what it leaves out
MR: Final = {"kind": "image", "modality": "mr"}


class Session:
    """What the tasks share; anything that goes wrong unseen counts for the task under way."""

    def __init__(self, window: MainWindow, home: Path, inputs: Path, random: Random) -> None:
        self.window, self.home, self.inputs, self.random = window, home, inputs, random
        self._mark: Mark | None = None
        self._results: dict[str, str] = {}  # of jobs, as they came out the first time
        window.messages.queue.arrived.connect(self._on_message)

    def turn(self, act: Callable[[Session, Mark, Path], None], mark: Mark) -> None:
        """One task, from rest to rest."""
        self._mark = mark
        try:
            with room(self.home, mark) as folder:
                act(self, mark, folder)
                self.settle()
        finally:
            self.settle()

    def settle(self) -> None:
        """Nothing runs, nothing is said, nothing but the window is open."""
        window = self.window
        window.runs.cancel()
        window.experiments.presenter.cancel()
        wait(lambda: not window.runs.busy, "the runs end")
        wait(lambda: not window.experiments.busy, "the experiment ends")
        for widget in QApplication.topLevelWidgets():
            if widget.isVisible() and widget is not window:
                widget.reject() if isinstance(widget, QDialog) else widget.close()
        wait(lambda: not window.tasks.busy, "reading ends")
        window.messages.queue.clear()
        self._tidy()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def _tidy(self) -> None:
        if len(self.window.store) > MOST_RUNS:
            self.forget(list(self.window.store)[:-KEPT_RUNS])
        self.window.undo.stack.clear()

    def forget(self, runs: list[RunEntry]) -> None:
        """Runs go for good: what Undo could bring back would fill the memory."""
        for entry in runs:
            if entry.run_id in self.window.store:
                self.window.store.remove(entry.run_id)

    # -- data and runs ------------------------------------------------------------------------

    def open(self, path: Path | str, options: dict[str, Any] | None = None) -> None:
        before = self.window.setup.data
        self.window.data.open(str(path), options)
        wait(lambda: self.window.setup.data is not before or self.said(), "the data open")
        grid = self.window.grid
        wait(lambda: REFERENCE in grid and grid.pane(REFERENCE).image is not None, "they appear")

    def start(self, nfe: int = 8) -> list[RunEntry]:
        """Press Run with some settings; the new runs."""
        window, random = self.window, self.random
        if window.setup.data is None:
            self.open(self.inputs / "ct-64.npy", HU)
        wait(lambda: not window.tasks.busy, "reading ends")
        before = {entry.run_id for entry in window.store}
        values = {"prior": random.choice(("tv", "gaussian")), "nfe": nfe, "cg_iterations": 3}
        window.history.set_many({"method": random.choice(("dc-pnpdp", "diffpir")), **values})
        solver = window.left.solver
        click(random.choice((solver.run, solver.run, solver.both)))
        return [entry for entry in window.store if entry.run_id not in before]

    def finish(self, runs: list[RunEntry]) -> None:
        """Wait for the end; every result is there, and the same job gives the same bits."""
        wait(lambda: not self.window.runs.busy, "the runs end")
        for entry in runs:
            if entry.status == "failed":
                self.mark.unexpected(f"{entry.solver} failed: {entry.message}")
            elif entry.status == "done":
                self._check(entry)

    def _check(self, entry: RunEntry) -> None:
        if entry.images is None or not np.isfinite(entry.images).all():
            self.mark.lost(f"{entry.name} is done and has no image")
            return
        job = json.dumps(entry.job, sort_keys=True, default=str)
        key = hashlib.sha256(job.encode()).hexdigest()
        bits = hashlib.sha256(entry.images.tobytes()).hexdigest()
        if self._results.setdefault(key, bits) != bits:
            self.mark.lost(f"{entry.name} has other bits than the same job before")

    def finished_run(self) -> RunEntry:
        """One with an image and a record, made if need be."""
        for entry in reversed(list(self.window.store)):
            if entry.status == "done" and entry.images is not None and entry.record_path:
                return entry
        runs = self.start()
        self.finish(runs)
        return runs[-1]

    @staticmethod
    def data_gone(entry: RunEntry) -> bool:
        place = str(entry.job.get("input", ""))
        return not place.startswith("demo:") and not Path(place).exists()

    # -- what is said -------------------------------------------------------------------------

    @property
    def mark(self) -> Mark:
        assert self._mark is not None
        return self._mark

    def said(self) -> str:
        return " ".join(message.sentence for message in self.window.messages.queue.messages)

    def wait_said(self) -> str:
        wait(self.said, "a message")
        return self.said()

    def trouble(self, words: str) -> None:
        if self._mark is not None:
            self._mark.unexpected(words)

    def _on_message(self, sentence: str) -> None:
        if any(bug in sentence for bug in BUG):
            details = [message.details for message in self.window.messages.queue.messages]
            self.trouble(f"{sentence} {details[-1] if details else ''}")


class _Errors(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(f"log: {record.getMessage()}")


@contextlib.contextmanager
def watched(tell: Callable[[str], None]) -> Iterator[None]:
    """Exceptions nobody caught, errors in the log and complaints of Qt are told."""

    def on_error(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        tell("".join(traceback.format_exception(kind, error, trace)))

    def on_thread(found: threading.ExceptHookArgs) -> None:
        tell("".join(traceback.format_exception(found.exc_value)) if found.exc_value else "thread")

    def on_qt(kind: QtMsgType, context: object, words: str) -> None:
        mild = kind in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg)
        if not mild and not words.startswith(NO_SCREEN):
            tell(f"Qt: {words}")

    handler, hook, thread_hook = _Errors(tell), sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = on_error, on_thread
    logging.getLogger().addHandler(handler)
    before = qInstallMessageHandler(on_qt)
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook = hook, thread_hook
        logging.getLogger().removeHandler(handler)
        qInstallMessageHandler(before)
