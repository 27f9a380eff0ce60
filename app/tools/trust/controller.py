"""The questions about the current run in the main window: when they can be asked, what is kept."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot

from app.background import Ended, Mailbox
from app.context import AppContext
from app.pace_book import about
from app.runs.store import RunEntry
from app.tools.page import Page
from app.tools.trust.model import PULL, TITLES, Question, Reading, load_words
from app.tools.trust.page import Subject
from engine.spec.control import RunControl

if TYPE_CHECKING:
    from app.tools.trust.view import TrustWindow
    from engine.workflows.trust.slices import Answer

log = logging.getLogger("app")

NO_RUN: Final = "Choose a finished run in the list of runs."
NOT_RECORDED: Final = "This run was not recorded, so that its measurement cannot be made again."


def _answer(question: Question, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.trust.job import find_out

    return find_out(question, control, mailbox)


class Trust(Page):
    """Answers belong to a slice of a run and go with the run."""

    COMPUTING = (
        "A question about a run is being answered: wait, or stop it in Tools > Where is it "
        "guessing?"
    )
    GOING_ON = COMPUTING
    THING = "question"

    view: TrustWindow | None

    def __init__(self, context: AppContext) -> None:
        super().__init__(context, _answer)
        self._answers: dict[tuple[str, int], dict[str, Answer]] = {}
        context.store.added.connect(self._forget)
        context.store.removed.connect(self._forget)

    def show(self) -> None:
        super().show()
        self.refresh()

    def make_view(self) -> TrustWindow:
        from app.tools.trust.view import TrustWindow

        context = self.context
        view = TrustWindow(
            self.presenter, context.grid.link, self.reason, self.time, context.window
        )
        view.asked.connect(self.ask)
        view.help_asked.connect(partial(context.help_wanted.emit, "trust"))
        for signal in (
            context.panes.current_changed,
            context.grid.link.slice_changed,
            context.store.updated,
            self.presenter.blocked_changed,
        ):
            signal.connect(self.refresh)
        context.tasks.start("Loading the explanations …", load_words, self._on_words)
        return view

    def _on_words(self, readings: dict[str, Reading]) -> None:
        if self.view is not None:
            self.view.set_readings(readings)

    # -- asking -----------------------------------------------------------------------------

    def _entry(self) -> RunEntry | None:
        current = self.context.panes.current
        return self.context.store.get(current) if current is not None else None

    def subject(self) -> Subject | None:
        """The current run and the slice seen, when there is an image of it."""
        entry, panes = self._entry(), self.context.panes
        if entry is None or entry.running or entry.images is None:
            return None
        if panes.slice not in entry.slices:
            return None
        grid = self.context.grid
        shown = entry.run_id in grid
        placement = grid.pane(entry.run_id).annotations.placement if shown else None
        return Subject(entry, panes.slice, placement)

    def reason(self, kind: str) -> str:
        """Why this cannot be asked now; empty when it can."""
        panes, entry = self.context.panes, self._entry()
        if self.presenter.occupied:
            return self.presenter.occupied
        if entry is None:
            return NO_RUN
        if entry.stack is not None:
            return f"{entry.name} keeps no iterations: run this slice by itself first."
        if entry.images is None:
            return f"{entry.name} has no image. {entry.message}".strip()
        if panes.slice not in entry.slices:
            return f"{entry.label} was not run on slice {panes.slice + 1}."
        known = kind == PULL and self._question(kind, entry).gap is not None
        return "" if known or entry.record_path is not None else NOT_RECORDED

    def time(self, seeds: int) -> str:
        """How long so many seeds take: each is a run like the current one."""
        entry = self._entry()
        if entry is None or not entry.seconds:
            return ""
        one = entry.seconds / max(1, len(entry.slices))
        return f"{seeds} seeds: {about(seeds * one)}, or less when the map settles sooner."

    @Slot(str)
    def ask(self, kind: str) -> None:
        reason, entry = self.reason(kind), self._entry()
        if reason or entry is None:
            self.context.messages.notice(reason)
            return
        self.presenter.start(self._question(kind, entry))
        self.refresh()  # it is being computed
        log.info("%s: %s.", entry.name, TITLES[kind])

    def _question(self, kind: str, entry: RunEntry) -> Question:
        """A run of several slices keeps x - z of one of them only, and does not say of which."""
        frame = entry.last_frame if len(entry.slices) == 1 else None
        return Question(
            kind,
            entry.run_id,
            self.context.panes.slice,
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

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        super()._on_ended(ended)
        question, answer = self.presenter.request, ended.result
        known = self._answers.setdefault((question.run_id, question.slice), {})
        # stopped before there was a map, an older one is worth more
        worse = ended.status == "cancelled" and question.kind in known
        if answer is not None and not (worse and not answer.maps):
            known[question.kind] = answer
        if question.run_id not in self.context.store:
            self._forget(question.run_id)
        self.refresh()
        if self.view is not None:
            self.view.show_end(ended)
