"""The dose explorer in the main window: what one needs of the other."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal, Slot

from app.background import Ended, JobPresenter, Mail, Mailbox
from app.context import AppContext
from app.pace_book import UNKNOWN, about
from app.runs.events import RunFinished, RunStarted
from app.runs.kept import keep_pictures
from app.runs.snapshots import Snapshots
from app.session.jobs import job_lines, jobs_for
from app.tools.dose.model import CurrentScan, DoseRequest
from app.tools.dose.view import DoseWindow
from app.tools.page import Page
from app.widgets import ask_new_file
from engine.spec.control import RunControl

if TYPE_CHECKING:
    from app.tools.dose.job import Tile

log = logging.getLogger("app")


def _doses(asked: DoseRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.dose.job import run_doses

    return run_doses(asked, control, mailbox)


class DosePresenter(JobPresenter):
    tile = Signal(object)  # Tile

    def take(self, mail: Mail) -> None:
        for event in mail.events:
            if hasattr(event, "direct"):
                self.tile.emit(event)
        super().take(mail)


class Doses(Page):
    """How quality falls with the dose, for the slice and the method of the main window."""

    COMPUTING = "A dose sweep is being computed: wait, or cancel it in Tools > Dose explorer."
    GOING_ON = "A dose sweep is being computed: wait, or cancel it first."
    THING = "dose sweep"

    presenter: DosePresenter
    view: DoseWindow | None

    def __init__(self, context: AppContext) -> None:
        super().__init__(context, _doses)
        self.presenter.tile.connect(self._on_tile)

    def make_presenter(self, work: Callable[..., Ended]) -> DosePresenter:
        return DosePresenter(work, self.THING, self.GOING_ON, self)

    def now(self) -> CurrentScan:
        left, data = self.context.left, self.context.setup.data
        solver, panel = left.solver, left.acquisition()
        if data is None:
            return CurrentScan(fault="Open data first.")
        if solver.model.choices is None:
            return CurrentScan(modality=data.modality, fault="The methods are still loading.")
        forms = [form for form in (panel.form, solver.form, solver.run_form) if form is not None]
        fault = data.blocked or next((form.problem() for form in forms if not form.valid), "")
        if fault:
            return CurrentScan(modality=data.modality, fault=fault)
        job = jobs_for(
            [solver.value()],
            data=(data.text, data.options),
            modality=data.modality,
            slices=str(self.context.panes.slice),
            acquisition=panel.value(),
        )[-1]
        method = solver.model.method()
        label = method.label if method is not None else job["solver"]
        lines = job_lines(job, label, data.modality, not data.measured)
        words = ", ".join([*lines, f"slice {self.context.panes.slice + 1}"])
        calls = "nfe" in solver.model.complete(job)["settings"]
        return CurrentScan(job, words, data.modality, data.measured, calls)

    def times(self, jobs: list[dict[str, Any]], modality: str) -> str:
        data, paces = self.context.setup.data, self.context.paces
        size = data.image_size if data is not None else (1, 1)
        whole = self.context.left.solver.model.complete
        parts = [paces.seconds(whole(job), modality, size) for job in jobs]
        known = [part for part in parts if part is not None]
        return about(sum(known)) if len(known) == len(parts) else UNKNOWN

    def show(self) -> None:
        super().show()
        if self.view is not None:
            self.view.panel.refresh()

    def make_view(self) -> DoseWindow:
        context = self.context
        view = DoseWindow(self.presenter, self.now, self.times, context.tasks, context.window)
        view.started.connect(self.start)
        view.run_wanted.connect(self.open_as_run)
        view.failed.connect(context.messages.error)
        view.picture_wanted.connect(self._ask_picture)
        for signal in (
            context.ready,
            context.opened,
            context.left.solver.edited,
            context.left.acquisition_edited,
            context.grid.link.slice_changed,
        ):
            signal.connect(self._on_changed)
        return view

    @Slot()
    def _on_changed(self) -> None:
        if self.view is not None and self.view.isVisible() and not self.busy:
            self.view.panel.refresh()

    @Slot(object)
    def start(self, asked: DoseRequest) -> None:
        if self.presenter.reason(asked):
            return
        data = self.context.setup.data
        if self.view is not None and data is not None:
            here = self.context.panes.slice
            placement = data.placements[here] if data.placements else None
            self.view.begin(asked, self.context.grid.link, placement)
        self.presenter.start(asked)
        log.info("A dose sweep started.")

    @Slot(object)
    def _on_tile(self, tile: Tile) -> None:
        size = (tile.images.shape[1], tile.images.shape[2])
        self.context.paces.learn(tile.job, tile.modality, size, tile.seconds)
        if self.view is not None:
            self.view.add(tile)

    @Slot(object)
    def open_as_run(self, tile: Tile) -> str:
        """The image at one dose as a run of the main window, with its curves."""
        context, store = self.context, self.context.store
        run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
        context.panes.make_room([tile.job["solver"]])
        store.create(run_id, tile.job, tile.label)
        seen = (tile.modality, tile.unit, tile.slices, tile.pixel_mm, tile.reference)
        store.start(RunStarted(run_id, tile.label, tile.job, *seen, [], Snapshots()))
        store.grow([(run_id, values) for values in tile.history])
        store.change(run_id, note=tile.words)
        store.finish(
            RunFinished(
                run_id, "done", tile.images, tile.metrics, tile.seconds, None, tile.verdicts
            )
        )
        if (library := context.run_library) is not None:

            def keep() -> Path:
                path = library.begin(run_id)
                tile.keep(path)
                where = (tile.slices, tile.modality, tile.pixel_mm)
                keep_pictures(path, tile.images, Snapshots(), None, *where)
                library.refresh(run_id)
                return path

            def kept(path: Path) -> None:
                store.change(run_id, record_path=path)

            context.tasks.start("Keeping a run", keep, kept, context.messages.error)
        context.show_run(run_id)
        return run_id

    @Slot()
    def _ask_picture(self) -> None:
        if self.view is None:
            return
        context = self.context

        def chosen(text: str) -> None:
            context.keep_folder("picture", str(Path(text).parent))
            if self.view is not None:
                self.view.save_picture(Path(text))

        folder = context.folder_for("picture")
        ask_new_file(
            self.view,
            "Save the doses as a picture",
            folder,
            "PNG picture (*.png)",
            "dualscope-doses.png",
            chosen,
        )
