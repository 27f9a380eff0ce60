"""What the parts of the window need from each other, handed down to each of them."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QWidget

from app.background import JobPresenter
from app.center import Center
from app.columns import LeftColumn, RightColumn
from app.data.browser import DataBrowser
from app.data.opened import Opened
from app.data.presenter import DataPresenter
from app.data.recent import RecentFiles
from app.forms.choices import Choices, load_choices
from app.forms.history import UndoValues
from app.forms.labels import on_screen
from app.pace_book import PaceBook, about
from app.runs.events import RunFailed, RunFinished, RunStarted
from app.runs.presenter import RunPresenter
from app.runs.store import RunStore
from app.session.jobs import jobs_for, without_prior
from app.session.panes import Panes
from app.session.setup import Setup
from app.session.undo import Undo
from app.shell.messages import Messages
from app.shell.settings import AppSettings
from app.tasks import Tasks
from app.widgets import ask_path
from engine.files.run_library import RunLibrary
from engine.spec.errors import DualscopeError

log = logging.getLogger("app")

RUNNING: Final = "A run is going on: wait, finish or cancel it first."


class AppContext(QObject):
    """The parts of a window and what they do together; ``window`` is for dialogs to belong to."""

    ready = Signal()  # the engine is loaded: runs can start
    changed = Signal()  # other actions may be possible now
    opened = Signal(object)  # Opened, when every part shows it
    help_wanted = Signal(str)  # name of the page
    picture_source = Signal(object)  # a LinkedView whose panes may be saved and copied

    def __init__(
        self, window: QWidget, tasks: Tasks, settings: AppSettings, autosave: Path | None = None
    ) -> None:
        super().__init__(window)
        self.window, self.tasks, self.settings, self.autosave = window, tasks, settings, autosave
        self.jobs: list[JobPresenter] = []  # of which one computes, or a run
        self.messages, self.paces = Messages(window), PaceBook(settings)
        self.history = UndoValues({}, self)
        self.undo = Undo(self.history, self)
        self._not_opened = ""  # why the last data were not
        self.store = RunStore(self)
        self.run_library = self._open_library(autosave)
        self.runs = RunPresenter(self.store, self.run_library, self)
        self.recent = RecentFiles(tasks, parent=self)
        self.data = DataPresenter(tasks, self.recent, self)
        self.browser = DataBrowser(self.data)
        self.browser.menu.start_folder = partial(self.folder_for, "open")
        self.browser.menu.keep_folder = partial(self.keep_folder, "open")
        self.left = LeftColumn(self.browser, self.history)
        self.left.set_expert(bool(settings.get("expert")))
        self.left.mode.expert_changed.connect(partial(settings.set, "expert"))
        self.left.solver.plain.time_of = self.time_of
        self.changed.connect(self.left.solver.plain.refresh)
        self.center = Center(self.store, self.runs, self.messages)
        self.grid = self.center.grid
        self.right = RightColumn(self.store, self.undo.stack, self.grid.inspector)
        self.grid.link.measurements.stack = self.undo.stack
        self.panes = Panes(self.grid, self.store, self.runs)
        self.setup = Setup(self.left, self.data)
        self._connect()

    def _open_library(self, root: Path | None) -> RunLibrary | None:
        """Where runs are kept; without one they live in memory only."""
        try:
            return None if root is None else RunLibrary(root)
        except DualscopeError as error:
            self.messages.error(on_screen(error))
            return None

    def _connect(self) -> None:
        data, panes, runs, solver = self.data, self.panes, self.runs, self.left.solver
        plots, scrubber, link = self.center.plots, self.center.scrubber, self.grid.link
        plots.belongs = panes.belongs
        self.right.table.set_belongs(panes.belongs)
        data.opened.connect(self._on_opened)
        data.preview.connect(panes.show_preview)
        panes.slice_wanted.connect(data.show_slice)
        link.slice_changed.connect(self.setup.set_slice)
        link.slice_changed.connect(self.browser.set_slice)
        link.notice.connect(self.messages.notice)
        link.set_mark_corner(self.settings.get("mark_corner"))
        link.mark_corner_changed.connect(partial(self.settings.set, "mark_corner"))
        self.browser.slice_wanted.connect(link.set_slice)
        for failing in (data, self.tasks, self.settings):
            failing.failed.connect(self.messages.error)
        data.failed.connect(self._on_data_failed)
        solver.run_requested.connect(lambda asked: self.start_runs([asked]))
        solver.run_both_requested.connect(self.start_runs)
        runs.state_changed.connect(self._on_state)
        runs.started.connect(self._on_started)
        runs.finished.connect(self._on_finished)
        runs.failed.connect(self._on_failed)
        plots.wanted_changed.connect(self._show_wanted)
        self.center.bar.planes_chosen.connect(panes.set_planes)
        panes.wanted_changed.connect(self._show_wanted)
        panes.here_wanted.connect(self.run_here)
        self.right.table.shown.connect(self.show_run)
        self.right.table.note.compare_requested.connect(self.compare_without_prior)
        scrubber.chosen.connect(self._on_scrubbed)
        scrubber.live_changed.connect(self._on_live)

    def load_engine(self) -> None:
        """In the background; the window can be looked at and resized meanwhile."""
        self.runs.warm_up()
        self.tasks.start("Loading the engine …", load_choices, self._on_choices)

    def _on_choices(self, choices: Choices) -> None:
        self.left.solver.set_choices(choices)
        self.runs.labels = {method.name: method.label for method in choices.methods}
        self.changed.emit()
        self.ready.emit()

    def ask_file(self) -> None:
        self._ask("Open a file", QFileDialog.FileMode.ExistingFile)

    def ask_folder(self) -> None:
        self._ask("Open a folder", QFileDialog.FileMode.Directory)

    def _ask(self, title: str, mode: QFileDialog.FileMode) -> None:
        def chosen(path: str) -> None:
            self.keep_folder("open", str(Path(path).parent))
            self.data.open(path)

        ask_path(self.window, title, self.folder_for("open"), chosen, mode)

    @Slot(str, str)
    def _on_data_failed(self, sentence: str, details: str) -> None:
        self._not_opened = sentence

    @Slot(object)
    def _on_opened(self, data: Opened) -> None:
        log.info("Opened: %s.", data.name)
        self.center.scrubber.set_run(None)
        self.right.table.note.set_run(None)
        self.panes.set_data(data, data.middle)
        self.center.plots.redraw()  # with the runs of these data only
        self.right.table.model.refresh()
        self.messages.queue.retract(self._not_opened)  # what could not be opened is no matter now
        self.setup.set_data(data)
        self.setup.set_slice(self.panes.slice)
        self.browser.set_slice(self.panes.slice)
        self.changed.emit()
        self.opened.emit(data)

    def folder_for(self, purpose: str, usual: Path | None = None) -> str:
        """Where a person was the last time for this."""
        return str(self.settings.get("folders").get(purpose, str(usual or Path.home())))

    def keep_folder(self, purpose: str, path: str) -> None:
        self.settings.put("folders", purpose, path)

    # -- who computes -----------------------------------------------------------------------

    def time_of(self, job: dict[str, Any], times: float = 1, unknown: str = "") -> str:
        """How long ``times`` slices of the open data take with a job, in words."""
        data = self.setup.data
        if data is None:
            return ""
        whole = self.left.solver.model.complete(job)
        scan = {"acquisition": self.left.acquisition().value(), **whole}
        one = self.paces.seconds(scan, data.modality, data.image_size)
        return unknown if one is None else about(times * one)

    @property
    def busy(self) -> bool:
        """Whether something computes, so that a run cannot start."""
        return self.runs.busy or any(job.busy for job in self.jobs)

    def share(self, presenter: JobPresenter, computing: str) -> None:
        """Either runs or one of the jobs compute, never two of them.

        They would slow each other down, and times would mean nothing. ``computing`` is what the
        others say meanwhile.
        """
        self.jobs.append(presenter)
        presenter.state_changed.connect(partial(self._on_job, presenter, computing))

    def _on_job(self, presenter: JobPresenter, computing: str, state: str) -> None:
        occupied = computing if presenter.busy else ""
        self.left.solver.set_occupied(occupied)
        for job in self.jobs:
            if job is not presenter:
                job.set_blocked(occupied)
        self.changed.emit()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        self.left.solver.set_running(self.runs.busy)
        for job in self.jobs:
            job.set_blocked(RUNNING if self.runs.busy else "")
        self.changed.emit()

    # -- runs -------------------------------------------------------------------------------

    @Slot(list)
    def start_runs(self, asked: list[dict[str, Any]]) -> list[str]:
        data = self.setup.data
        if data is None or self.busy:
            return []
        jobs = jobs_for(
            asked,
            data=(data.text, data.options),
            modality=data.modality,
            slices=self.left.slices.value(),
            acquisition=self.left.acquisition().value(),
            runs=self.store,
        )
        self.panes.make_room(job["solver"] for job in jobs)
        run_ids = self.runs.start(jobs)
        self.show_run(run_ids[-1] if len(asked) == 1 else run_ids[-len(asked)])
        return run_ids

    @Slot()
    def run_here(self) -> None:
        """The methods in sight on this slice, where they have none; as their runs were made."""
        if self.busy:
            self.messages.notice("Wait until the present run has ended.")
            return
        here = {"slices": str(self.panes.slice)}
        jobs = [{**entry.job, **here} for entry in self.panes.lacking()]
        if jobs:
            self.panes.make_room(job["solver"] for job in jobs)
            self.show_run(self.runs.start(jobs)[-1])

    @Slot(str)
    def compare_without_prior(self, run_id: str) -> None:
        """The scan of a run again, with the method that its verdict offers."""
        if self.busy:
            self.messages.notice("Wait until the present run has ended.")
        elif (entry := self.store.get(run_id)) is not None:
            self.panes.make_room([entry.compare_with])
            self.show_run(self.runs.start([without_prior(entry)])[-1])

    @Slot(str)
    def show_run(self, run_id: str) -> None:
        """Make a run the current one: the scrubber and the extra planes are of it."""
        entry = self.store.get(run_id)
        if entry is None:
            return
        if not entry.visible:
            self.store.change(run_id, visible=True)
        self.center.scrubber.set_run(run_id)
        self.right.table.note.set_run(run_id)
        self.right.table.mark_current(run_id)
        self.panes.set_current(run_id)
        self._show_wanted()

    @Slot()
    def _show_wanted(self) -> None:
        self.runs.show(self.center.plots.wanted | self.panes.wanted, self.panes.sample)

    @Slot(object)
    def _on_started(self, started: RunStarted) -> None:
        log.info("%s started on %d slice(s).", started.label, len(started.slices))
        for warning in started.warnings:
            self.messages.notice(on_screen(warning))

    @Slot(object)
    def _on_finished(self, ended: RunFinished) -> None:
        entry = self.store.get(ended.run_id)
        name = entry.label if entry is not None else "A run"
        log.info("%s %s after %.1f s.", name, ended.status, ended.seconds)
        if entry is not None and entry.images is not None and ended.status == "done":
            count, *size = entry.images.shape
            self.paces.learn(entry.job, entry.modality, (size[0], size[1]), ended.seconds / count)

    @Slot(object)
    def _on_failed(self, failure: RunFailed) -> None:
        log.warning("A run failed.")  # its sentence may name a file
        self.messages.error(failure.sentence, failure.details)

    @Slot(str, int, float, object)
    def _on_scrubbed(self, run_id: str, k: int, sigma: float, images: object) -> None:
        self.panes.scrub(k, self.center.scrubber.live)

    @Slot(bool)
    def _on_live(self, live: bool) -> None:
        if live:
            self.panes.scrub(0, True)
