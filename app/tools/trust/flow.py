"""The questions about the current run in the main window: when they can be asked, what is kept."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Slot

from app.runs.store import RunEntry
from app.session.workspaces import RUNNING
from app.tools.trust.model import PULL, TITLES, Ended, Question, Reading, load_words
from app.tools.trust.page import Subject
from app.tools.trust.presenter import TrustPresenter

if TYPE_CHECKING:
    from app.tools.trust.view import TrustWindow
    from app.window import MainWindow
    from engine.workflows.trust.slices import Answer

log = logging.getLogger("app")

OCCUPIED: Final = (
    "A question about a run is being answered: wait, or stop it in Tools > Where is it guessing?"
)
NO_RUN: Final = "Choose a finished run in the list of runs."
NOT_RECORDED: Final = "This run was not recorded, so that its measurement cannot be made again."


class Trust(QObject):
    """Answers belong to a slice of a run and go with the run.

    Either runs, an experiment or a question compute, never two of them: they would slow each
    other down, and times would mean nothing.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window = window
        self.presenter = TrustPresenter(self)
        self.view: TrustWindow | None = None
        self._answers: dict[tuple[str, int], dict[str, Answer]] = {}
        self.presenter.state_changed.connect(self._on_state)
        self.presenter.ended.connect(self._on_ended)
        window.store.added.connect(self._forget)
        window.store.removed.connect(self._forget)

    @property
    def busy(self) -> bool:
        return self.presenter.busy

    def show(self) -> None:
        if self.view is None:
            self.view = self._make_view()
        self.refresh()
        self.view.show()
        self.view.raise_()
        self.view.activateWindow()

    def request_close(self) -> None:
        """The windows go at once; a question first ends the iteration it is in."""
        if self.view is not None:
            self.view.close()
        if self.busy:
            self.window.hide()
        self.presenter.request_close()

    def _make_view(self) -> TrustWindow:
        from app.tools.trust.view import TrustWindow

        window = self.window
        view = TrustWindow(self.presenter, window.grid.link, self.reason, window)
        view.asked.connect(self.ask)
        view.help_asked.connect(partial(window.show_help, "trust"))
        window.panes.current_changed.connect(self.refresh)
        window.grid.link.slice_changed.connect(self.refresh)
        window.store.updated.connect(self.refresh)
        window.runs.state_changed.connect(self.refresh)
        for page in window.pages:
            page.presenter.state_changed.connect(self.refresh)
        window.tasks.start("Loading the explanations …", load_words, self._on_words)
        return view

    def _on_words(self, readings: dict[str, Reading]) -> None:
        if self.view is not None:
            self.view.set_readings(readings)

    # -- asking -----------------------------------------------------------------------------

    def _entry(self) -> RunEntry | None:
        current = self.window.panes.current
        return self.window.store.get(current) if current is not None else None

    def subject(self) -> Subject | None:
        """The current run and the slice seen, when there is an image of it."""
        entry, panes = self._entry(), self.window.panes
        if entry is None or entry.running or entry.images is None:
            return None
        if panes.slice not in entry.slices:
            return None
        grid = self.window.grid
        shown = entry.run_id in grid
        placement = grid.pane(entry.run_id).annotations.placement if shown else None
        return Subject(entry, panes.slice, placement)

    def reason(self, kind: str) -> str:
        """Why this cannot be asked now; empty when it can."""
        window, entry = self.window, self._entry()
        if self.busy:
            return OCCUPIED
        if window.runs.busy:
            return RUNNING
        if page := next((page for page in window.pages if page.busy), None):
            return page.COMPUTING
        if entry is None:
            return NO_RUN
        if entry.images is None:
            return f"{entry.name} has no image. {entry.message}".strip()
        if window.panes.slice not in entry.slices:
            return f"{entry.label} was not run on slice {window.panes.slice + 1}."
        known = kind == PULL and self._question(kind, entry).gap is not None
        return "" if known or entry.record_path is not None else NOT_RECORDED

    @Slot(str)
    def ask(self, kind: str) -> None:
        reason, entry = self.reason(kind), self._entry()
        if reason or entry is None:
            self.window.messages.notice(reason)
            return
        self.presenter.start(self._question(kind, entry))
        log.info("%s: %s.", entry.name, TITLES[kind])

    def _question(self, kind: str, entry: RunEntry) -> Question:
        """A run of several slices keeps x - z of one of them only, and does not say of which."""
        frame = entry.last_frame if len(entry.slices) == 1 else None
        return Question(
            kind,
            entry.run_id,
            self.window.panes.slice,
            entry.record_path,
            dict(entry.job),
            seeds=self.view.seeds.value() if self.view is not None else 0,
            gap=frame.planes.get("x - z") if frame is not None else None,
            unit=frame.units.get("x - z", "") if frame is not None else "",
        )

    # -- answers ----------------------------------------------------------------------------

    def answers(self, run_id: str, number: int) -> dict[str, Answer]:
        return self._answers.get((run_id, number), {})

    @Slot()
    def refresh(self) -> None:
        if self.view is not None:
            subject = self.subject()
            found = {} if subject is None else self.answers(subject.entry.run_id, subject.slice)
            self.view.show_subject(subject, found)

    @Slot(str)
    def _forget(self, run_id: str) -> None:
        """Deleted, or a run of that name begins anew."""
        self._answers = {key: one for key, one in self._answers.items() if key[0] != run_id}
        self.refresh()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        occupied = OCCUPIED if self.busy else ""
        self.window.left.solver.set_occupied(occupied)
        for page in self.window.pages:
            page.presenter.set_blocked(occupied)
        self.window.menus.refresh()

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        question = ended.question
        known = self._answers.setdefault((question.run_id, question.slice), {})
        # stopped before there was a map, an older one is worth more
        worse = (
            ended.stopped and question.kind in known and not (ended.answer and ended.answer.maps)
        )
        if ended.answer is not None and not worse:
            known[question.kind] = ended.answer
        if question.run_id not in self.window.store:
            self._forget(question.run_id)
        self.refresh()
        if self.view is not None:
            self.view.show_end(ended)
        if ended.sentence:
            self.window.messages.error(ended.sentence, ended.details)
