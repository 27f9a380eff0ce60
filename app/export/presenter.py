"""Between the export dialog and the files: what would be written, and writing it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.export.exporting import Cancelled, Window, export_report, export_runs
from app.export.plan import Choices, Found, Plan, Shown, look, make_plan
from app.tasks import Tasks

LOOK_MS = 150  # after the last letter typed
POLL_MS = 66
LOOKING = "The folder is being looked into."


@dataclass(frozen=True)
class Outcome:
    """How an export ended, in ``words`` for the person; ``notes`` tell what a format lost."""

    words: str
    folder: Path
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    details: str = ""
    failed: bool = False
    cancelled: bool = False


class Ticket:
    """One export under way: written by its thread, read by the screen."""

    def __init__(self) -> None:
        self.state = (0.0, "")
        self.stop = threading.Event()

    def progress(self, share: float, words: str) -> None:
        self.state = (share, words)


class ExportPresenter(QObject):
    """Plans with every change; asks the disk and writes in the tasks' thread."""

    changed = Signal()  # plan, found or reason
    progressed = Signal(float, str)
    finished = Signal(object)  # Outcome

    def __init__(self, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks = tasks
        self.shown, self.choices = Shown(), Choices()
        self.plan, self.found = Plan(), Found()
        self._looking: asyncio.Future[Any] | None = None
        self._looked = False
        self._ticket: Ticket | None = None
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(LOOK_MS)
        self._wait.timeout.connect(self._look)
        self._poll = QTimer(self)
        self._poll.setInterval(POLL_MS)
        self._poll.timeout.connect(self._tell)

    def set_choices(self, choices: Choices) -> None:
        self.choices = choices
        self._replan()

    @property
    def exporting(self) -> bool:
        return self._ticket is not None

    @property
    def reason(self) -> str:
        """Why nothing can be written now; empty when it can."""
        if self.exporting:
            return "Files are being written."
        if self.plan.reason:
            return self.plan.reason
        if not self._looked:
            return LOOKING
        if self.found.reason:
            return self.found.reason
        count = len(self.found.existing)
        if count and not self.choices.replace:
            what = "One file exists" if count == 1 else f"{count} files exist"
            return f"{what} already: tick “Replace”, or choose another name."
        return ""

    def _replan(self) -> None:
        """Agreeing to replace files holds for just these files."""
        plan = make_plan(self.shown, self.choices)
        if plan.files != self.plan.files or plan.reason:
            self._forget()
        self.plan = plan
        if not plan.reason and not self._looked:
            self._wait.start()
        else:
            self._wait.stop()
        self.changed.emit()

    @Slot()
    def _look(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        plan = self.plan
        self._looking = self.tasks.start(
            "Looking into a folder", partial(look, plan), partial(self._take_found, plan)
        )

    def _take_found(self, plan: Plan, found: Found) -> None:
        self._looking = None
        if plan.files == self.plan.files and not self.exporting:
            self.found, self._looked = found, True
            self.changed.emit()

    @Slot()
    def export(self) -> None:
        if self.reason:
            return
        ticket = self._ticket = Ticket()
        plan, choices, window = self.plan, self.choices, self.shown.window
        self._poll.start()
        self.changed.emit()
        started = self.tasks.start(
            "Exporting",
            partial(write, plan, choices, window, ticket),
            self._finish,
            partial(self._fail, plan),
        )
        if started is None:
            self._end()

    @Slot()
    def cancel(self) -> None:
        """Takes effect before the next file or slice; nothing is left of the export."""
        if self._ticket is not None:
            self._ticket.stop.set()

    def rest(self) -> None:
        """The dialog is closed: ask and write nothing more."""
        self.cancel()
        self._wait.stop()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._forget()

    def _forget(self) -> None:
        self._looked, self.found = False, Found()
        self.choices = replace(self.choices, replace=False)

    @Slot()
    def _tell(self) -> None:
        if self._ticket is not None:
            self.progressed.emit(*self._ticket.state)

    def _finish(self, outcome: Outcome) -> None:
        self._end()
        self.finished.emit(outcome)

    def _fail(self, plan: Plan, sentence: str, details: str) -> None:
        self._end()
        folder = plan.files[0].parent
        words = f"Nothing was written. {sentence}"
        self.finished.emit(Outcome(words, folder, details=details, failed=True))

    def _end(self) -> None:
        """The folder has other files now, in any case."""
        self._poll.stop()
        self._ticket = None
        self._forget()
        self._replan()


def write(plan: Plan, choices: Choices, window: Window | None, ticket: Ticket) -> Outcome:
    """In the tasks' thread."""
    folder = plan.files[0].parent
    asked = (window, choices.deidentify, choices.replace, ticket.progress, ticket.stop.is_set)
    try:
        if plan.report is not None:
            notes = export_report(plan.runs, plan.report, *asked)
        else:
            notes = export_runs(plan.runs, *asked)
    except Cancelled:
        return Outcome("Cancelled: nothing was written.", folder, cancelled=True)
    count = len(plan.files)
    words = f"{plan.files[0].name} is written." if count == 1 else f"{count} files are written."
    return Outcome(words, folder, plan.files, tuple(notes))
