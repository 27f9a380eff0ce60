"""Runs over a whole stack in the main window: its panes fill slice by slice."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot

from app.background import Ended, JobPresenter, Mail, Mailbox
from app.context import AppContext
from app.data.opened import SeriesItem
from app.data.series_list import ICON_PX
from app.data.thumbnails import to_bytes
from app.forms.run_menu import RangeDialog, RunMenu
from app.pace_book import UNKNOWN
from app.runs.store import RunEntry
from app.session.jobs import jobs_for
from app.tools.page import Page
from app.tools.volume.stack_model import (
    Focus,
    SliceDone,
    StackEnded,
    StackRequest,
    StackStarted,
)
from engine.files.folders import state_folder
from engine.spec.control import RunControl

LIVE: Final = "live "


def _stack(asked: StackRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.volume.stack_job import run_stack

    return run_stack(asked, control, mailbox)


class StackPresenter(JobPresenter):
    began = Signal(object)  # StackStarted
    slices_done = Signal(list)  # SliceDone of one run, in the order they came
    live = Signal(str, object)  # run id, LiveSlice
    stack_ended = Signal(object)  # StackEnded

    def take(self, mail: Mail) -> None:
        done: dict[str, list[SliceDone]] = {}
        for event in mail.events:
            if isinstance(event, SliceDone):
                done.setdefault(event.run_id, []).append(event)
        for event in mail.events:
            if isinstance(event, StackStarted):
                self.began.emit(event)
        for slot, frame in mail.frames.items():
            if slot.startswith(LIVE):
                self.live.emit(slot.removeprefix(LIVE), frame)
        for slices in done.values():
            self.slices_done.emit(slices)
        for event in mail.events:
            if isinstance(event, StackEnded):
                self.stack_ended.emit(event)
        super().take(mail)


class Stacks(Page):
    COMPUTING = "A stack is being computed: wait, or cancel it first."
    GOING_ON = "A stack is being computed: wait, or cancel it first."
    THING = "stack"

    presenter: StackPresenter

    def __init__(self, context: AppContext) -> None:
        super().__init__(context, _stack)
        self.focus = Focus()
        store, solver = context.store, context.left.solver
        self.menu = RunMenu(solver.run, solver.more, self.estimate)
        self.menu.this_wanted.connect(self._run_this)
        self.menu.range_wanted.connect(self.ask_range)
        self.menu.all_wanted.connect(self._run_all)
        context.opened.connect(self._on_opened)
        context.panes.rest_wanted.connect(self.go_on)
        context.grid.link.slice_changed.connect(self._on_slice)
        self.presenter.began.connect(self._on_began)
        self.presenter.slices_done.connect(self._on_slices)
        self.presenter.live.connect(self._on_live)
        self.presenter.stack_ended.connect(self._on_stack_ended)
        self.store = store

    def make_presenter(self, work: Callable[..., Ended]) -> StackPresenter:
        return StackPresenter(work, self.THING, self.GOING_ON, self)

    # -- asking -----------------------------------------------------------------------------

    def estimate(self, count: int) -> str:
        """How long so many slices would take; empty when nothing is open."""
        context, data = self.context, self.context.setup.data
        if data is None or context.left.solver.problem():
            return ""
        return context.time_of(context.left.solver.value(), count, UNKNOWN)

    @Slot()
    def _run_this(self) -> None:
        self.context.start_runs([self.context.left.solver.value()])

    @Slot()
    def _run_all(self) -> None:
        data = self.context.setup.data
        if data is not None:
            self.start(0, data.count)

    @Slot()
    def ask_range(self) -> RangeDialog | None:
        data = self.context.setup.data
        if data is None:
            return None
        dialog = RangeDialog(data.count, self.focus.slice, self.estimate, self.context.window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.chosen.connect(self.start)
        dialog.open()
        return dialog

    @Slot(int, int)
    def start(self, first: int, end: int) -> list[str]:
        """Slices ``first`` up to, not with, ``end`` with what the left column says."""
        context = self.context
        data, solver = context.setup.data, context.left.solver
        if data is None or context.busy or solver.problem():
            return []
        jobs = jobs_for(
            [solver.value()],
            data=(data.text, data.options),
            modality=data.modality,
            slices=f"{first}:{end}",
            acquisition=context.left.acquisition().value(),
            runs=self.store,
        )
        return self.start_jobs(jobs)

    @Slot()
    def go_on(self) -> list[str]:
        """With the stacks in sight that were stopped: what they have is found in their folder."""
        lacking = self.context.panes.lacking()
        return self.start_jobs([entry.job for entry in lacking if entry.stack is not None])

    def start_jobs(self, jobs: Sequence[dict[str, Any]]) -> list[str]:
        context = self.context
        data = context.setup.data
        if data is None or context.busy or not jobs:
            return []
        context.panes.make_room(job["solver"] for job in jobs)
        stamp, labels = time.strftime("%Y%m%d-%H%M%S"), context.runs.labels
        named = tuple((f"{stamp}-{uuid.uuid4().hex[:6]}", job) for job in jobs)
        for run_id, job in named:
            self.store.create(run_id, job, f"{labels.get(job['solver'], job['solver'])}, stack")
        self.focus.slice = context.panes.slice
        root = state_folder() / "stacks"
        window = context.grid.link.window_model.window
        seen = (window.centre, window.width)
        self.presenter.start(StackRequest(named, root, self.focus, data.name, seen))
        context.show_run(named[-1][0])
        return [run_id for run_id, _ in named]

    # -- what is told -----------------------------------------------------------------------

    @Slot(object)
    def _on_opened(self, data: Any) -> None:
        self.menu.set_count(data.count)
        self.focus.slice = self.context.panes.slice

    @Slot(int)
    def _on_slice(self, number: int) -> None:
        self.focus.slice = number  # the next slice is the nearest to this one

    @Slot(object)
    def _on_began(self, event: StackStarted) -> None:
        self.store.change(
            event.run_id,
            status="running",
            label=event.label,
            job=event.job,
            modality=event.modality,
            unit=event.unit,
            slices=event.slices,
            pixel_mm=event.pixel_mm,
            stack=event.stack,
        )

    @Slot(list)
    def _on_slices(self, slices: list[SliceDone]) -> None:
        entry = self.store.get(slices[0].run_id)
        if entry is None or entry.stack is None:
            return
        for one in slices:
            entry.stack.metrics[one.number] = one.metrics
            if entry.stack.live is not None and entry.stack.live.number == one.number:
                entry.stack.live = None
        if slices[-1].fresh:
            size = entry.stack.size
            self.context.paces.learn(entry.job, entry.modality, size, slices[-1].seconds)
        spent = entry.seconds + sum(one.seconds for one in slices)
        self.store.change(entry.run_id, metrics=entry.stack.mean(), seconds=spent)

    @Slot(str, object)
    def _on_live(self, run_id: str, live: Any) -> None:
        entry = self.store.get(run_id)
        if entry is not None and entry.stack is not None:
            entry.stack.live = live
            self.store.change(run_id)

    @Slot(object)
    def _on_stack_ended(self, event: StackEnded) -> None:
        entry = self.store.get(event.run_id)
        if entry is None:
            return
        if entry.stack is not None:
            entry.stack.live = None
        self.store.change(event.run_id, status=event.status, message=event.sentence)
        if event.series is not None:
            about = f"{len(entry.slices)} slices"
            self.context.data.add_result(
                SeriesItem(
                    0,
                    str(event.series),
                    f"Result {entry.name}",
                    len(entry.slices),
                    entry.modality,
                    screen_text=about,
                ),
                self._picture(entry),
            )

    def _picture(self, entry: RunEntry) -> np.ndarray | None:
        middle = entry.stack.image(entry.slices[len(entry.slices) // 2]) if entry.stack else None
        window = self.context.grid.link.window_model.window
        if middle is None:
            return None
        return to_bytes(middle, entry.modality, (window.centre, window.width), 2 * ICON_PX)
