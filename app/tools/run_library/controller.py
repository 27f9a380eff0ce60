"""The library in the main window: keeps runs, opens them again, goes on with them, makes room."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.context import RUNNING, AppContext
from app.forms.labels import on_screen
from app.runs.store import RunEntry
from app.tools.run_library.model import LibraryModel
from app.tools.run_library.view import LibraryWindow
from app.widgets import ask_first
from app.workspace.restore import kept_run
from engine.files.budget import size_in_words
from engine.files.run_library import RunLibrary
from engine.files.run_library_entry import INTERRUPTED, LibraryEntry
from engine.spec.errors import DualscopeError, RequestError

log = logging.getLogger("app")

MIB = 1 << 20
NOT_KEPT = "The files of the runs cannot be kept, so there is no library: see the first message."
IN_USE = "{} of {} runs stay: they are going on, or open in another window."
CHANGED = (
    "The data of {} have changed since it was made: its image is of the old ones, and it cannot "
    "be exported or measured with the new ones."
)
SETTLE_MS = 60  # several changes of the list are one question


class Library(QObject):
    """The window is made when it is first asked for; runs are kept whether it is open or not."""

    listed = Signal()  # the window shows the newest answer

    def __init__(self, context: AppContext) -> None:
        super().__init__(context.window)
        self.context, self.run_library = context, context.run_library
        self.view: LibraryWindow | None = None
        self._notes: dict[str, str] = {}
        self._opening: list[RunEntry] = []  # waiting for their data
        self._asked = 0
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SETTLE_MS)
        self._soon.timeout.connect(self.ask)
        store, runs = context.store, context.runs
        store.added.connect(self._on_added)
        store.removed.connect(self._on_removed)
        store.updated.connect(self._on_updated)
        runs.started.connect(self.ask_soon)
        runs.finished.connect(self._on_ended)
        runs.failed.connect(self._on_ended)
        runs.state_changed.connect(self._show_busy)
        context.changed.connect(self._show_busy)
        context.opened.connect(self._on_opened)
        context.data.failed.connect(self._on_data_failed)
        context.right.table.run_library_wanted.connect(self.show)

    @property
    def most_bytes(self) -> int:
        return int(self.context.settings.get("library_mib")) * MIB

    def tidy(self) -> None:
        """At the start: files and index into step, room within the limit, what was interrupted."""
        if (library := self.run_library) is None:
            return

        def work() -> int:
            library.agree()
            library.make_room(self.most_bytes)
            return sum(entry.resumable for entry in library.find(status=(INTERRUPTED,)))

        self.context.tasks.start("Looking through the library", work, self._on_tidy)

    def _on_tidy(self, interrupted: int) -> None:
        if self.run_library is not None and self.run_library.problem:
            log.warning("The index of the library is in memory only.")
        if interrupted:
            runs = "1 run was" if interrupted == 1 else f"{interrupted} runs were"
            self.context.messages.notice(
                f"{runs} interrupted and can go on: File > Library of runs (Ctrl+L)."
            )

    # -- the window -------------------------------------------------------------------------

    @Slot()
    def show(self) -> None:
        if self.run_library is None:
            self.context.messages.notice(NOT_KEPT)
            return
        if self.view is None:
            self.view = self._make_view(self.run_library)
        self.view.show()
        self.view.raise_()
        self.view.activateWindow()
        self._show_busy()
        self.ask()

    def _make_view(self, library: RunLibrary) -> LibraryWindow:
        context = self.context
        model = LibraryModel(library, context.store, lambda: context.runs.labels, self)
        model.note_written.connect(self.write_note)
        view = LibraryWindow(model, self.most_bytes, context.window)
        view.asked.connect(self.ask_soon)
        view.open_wanted.connect(self.open)
        view.resume_wanted.connect(self.resume)
        view.delete_wanted.connect(self.ask_delete)
        view.pin_wanted.connect(self.pin)
        view.limit_changed.connect(self._on_limit)
        return view

    def close(self) -> None:
        self._soon.stop()
        if self.view is not None:
            self.view.close()

    @Slot()
    def ask_soon(self) -> None:
        self._soon.start()

    @Slot()
    def ask(self) -> None:
        """List what the search asks for; an answer that is overtaken is not shown."""
        view, library, data = self.view, self.run_library, self.context.setup.data
        if view is None or library is None or not view.isVisible():
            return
        words, status, only_open = view.filters()
        place = data.text if data is not None and only_open else None
        self._asked += 1
        number = self._asked

        def work() -> tuple[list[LibraryEntry], int, int]:
            library.agree()
            found = library.find(words, status)
            if only_open:
                found = [entry for entry in found if entry.input == place]
            return found, len(library.find()), library.used()

        def done(answer: tuple[list[LibraryEntry], int, int]) -> None:
            if number == self._asked:
                view.show_entries(*answer)
                self.listed.emit()

        self.context.tasks.start("Looking through the library", work, done)

    @Slot()
    def _show_busy(self) -> None:
        if self.view is not None:
            solver = self.context.left.solver
            self.view.set_busy(solver.occupied or (RUNNING if self.context.runs.busy else ""))

    @Slot(int)
    def _on_limit(self, most_bytes: int) -> None:
        """Nothing is deleted while a number is being typed: room is made when a run has ended."""
        self.context.settings.set("library_mib", most_bytes // MIB)

    # -- opening ----------------------------------------------------------------------------

    @Slot(list)
    def open(self, entries: list[LibraryEntry]) -> None:
        """Show runs again, with their data; those that are there already come to the front."""
        context, library = self.context, self.run_library
        if library is None:
            return
        missing = [entry for entry in entries if entry.id not in context.store]
        if len(missing) < len(entries):
            context.show_run(next(entry.id for entry in entries if entry.id in context.store))
        if not missing:
            context.window.activateWindow()
            return
        others = list(context.store)

        def work() -> list[RunEntry]:
            made: list[RunEntry] = []
            for entry in missing:
                library.hold(entry.id)
                made.append(kept_run(library.record(entry.id), entry.note, others + made))
            return made

        context.tasks.start("Opening the run", work, self._on_read)

    def _on_read(self, entries: list[RunEntry]) -> None:
        context, job = self.context, entries[0].job
        self._opening = entries
        if context.panes.belongs(entries[0]):
            self._put()
        else:
            context.data.open(str(job.get("input", "")), job.get("options") or {})

    @Slot(object)
    def _on_opened(self, data: Any) -> None:
        self._soon.start()
        if self._opening:
            self._put()

    @Slot(str, str)
    def _on_data_failed(self, sentence: str, details: str) -> None:
        """The data are gone: curves and numbers can still be looked up."""
        if self._opening:
            self._put()

    def _put(self) -> None:
        entries, self._opening = self._opening, []
        context = self.context
        for entry in entries:
            if entry.run_id not in context.store:
                entry.number = context.store.next_number
                self._notes[entry.run_id] = entry.note
                context.store.add(entry)
                if entry.message and entry.status != "failed":
                    context.messages.notice(f"{entry.name}: {entry.message}")
        first, panes = entries[0], context.panes
        if first.slices and panes.belongs(first) and panes.slice not in first.slices:
            context.grid.link.set_slice(first.slices[len(first.slices) // 2])
        context.show_run(first.run_id)
        self._check_data(entries)

    def _check_data(self, entries: list[RunEntry]) -> None:
        """Whether the data are still those of the runs; meanwhile they are on the screen."""
        data, messages = self.context.setup.data, self.context.messages
        told = [entry for entry in entries if self.context.panes.belongs(entry)]
        if data is None or not told:
            return

        def done(found: str) -> None:
            names = [one.name for one in told if one.input_sha256 and one.input_sha256 != found]
            if names:
                messages.error(CHANGED.format(", ".join(names)))

        self.context.tasks.start(
            "Checking the data", data.dataset.sha256, done, lambda sentence, details: None
        )

    @Slot(object)
    def resume(self, entry: LibraryEntry) -> None:
        """Open the data of a run and compute the rest of it."""
        context, library = self.context, self.run_library
        occupied = context.left.solver.occupied or (RUNNING if context.runs.busy else "")
        if library is None or occupied:
            context.messages.notice(occupied or NOT_KEPT)
            return
        try:
            job = _job_of(library.record(entry.id))
        except DualscopeError as error:
            context.messages.error(on_screen(error))
            return
        if entry.id in context.store:
            context.store.remove(entry.id)
        data = context.setup.data
        if data is None or (data.text, data.options) != (job["input"], job.get("options") or {}):
            context.data.open(str(job["input"]), job.get("options") or {})
        context.show_run(context.runs.resume_record(library.record(entry.id), job))
        context.store.change(entry.id, note=entry.note)
        context.window.activateWindow()

    # -- remarks, pins, deleting ------------------------------------------------------------

    @Slot(str, str)
    def write_note(self, run_id: str, text: str) -> None:
        self._remark([run_id], note=text)
        if run_id in self.context.store:
            self._notes[run_id] = text
            self.context.store.change(run_id, note=text)

    @Slot(list, bool)
    def pin(self, entries: list[LibraryEntry], pinned: bool) -> None:
        self._remark([entry.id for entry in entries], pinned=pinned)

    def _remark(self, run_ids: list[str], **said: Any) -> None:
        if (library := self.run_library) is None:
            return

        def work() -> None:
            for run_id in run_ids:
                library.remark(run_id, **said)

        self.context.tasks.start("Writing the remark", work, lambda _: self.ask())

    @Slot(list)
    def ask_delete(self, entries: list[LibraryEntry]) -> None:
        """Files cannot be brought back, so this asks."""
        size = size_in_words(sum(entry.bytes for entry in entries))
        runs = "this run" if len(entries) == 1 else f"these {len(entries)} runs"
        ask_first(
            *("Delete from the library", f"Delete {runs}?"),
            f"{size} are freed; the files cannot be brought back.",
            partial(self.delete, entries),
            self.view or self.context.window,
        )

    def delete(self, entries: list[LibraryEntry]) -> None:
        library, store = self.run_library, self.context.store
        if library is None:
            return
        for entry in entries:
            run = store.get(entry.id)
            if run is not None and not run.running:
                store.remove(entry.id)

        def work() -> int:
            return sum(not library.delete(entry.id) for entry in entries)

        def done(stay: int) -> None:
            if stay:
                self.context.messages.notice(IN_USE.format(stay, len(entries)))
            self.ask()

        self.context.tasks.start("Deleting", work, done)

    # -- what the window's own list does ----------------------------------------------------

    @Slot(str)
    def _on_added(self, run_id: str) -> None:
        """Also one that Undo brings back. A new run is held by the worker, before its folder."""
        entry = self.context.store.get(run_id)
        if entry is None or self.run_library is None or entry.running:
            return
        self._notes.setdefault(run_id, entry.note)
        self._quietly(partial(self.run_library.hold, run_id))

    @Slot(str)
    def _on_removed(self, run_id: str) -> None:
        if self.run_library is not None:
            self._quietly(partial(self.run_library.let_go, run_id))

    @Slot(str)
    def _on_updated(self, run_id: str) -> None:
        entry = self.context.store.get(run_id)
        if entry is not None and not entry.running and entry.note != self._notes.get(run_id, ""):
            self._notes[run_id] = entry.note
            self._remark([run_id], note=entry.note)

    @Slot(object)
    def _on_ended(self, event: Any) -> None:
        if (library := self.run_library) is not None:
            self._quietly(lambda: library.make_room(self.most_bytes))
            self._soon.start()

    def _quietly(self, work: Any) -> None:
        self.context.tasks.start("Looking through the library", work, lambda _: None)


def _job_of(record: Path) -> dict[str, Any]:
    from engine.files.record import REMOVED, RunRecord

    job = RunRecord.read(record).job
    if not isinstance(job.get("input"), str) or job["input"] == REMOVED:
        raise RequestError("This run was recorded without naming its data: it cannot go on here.")
    return job
