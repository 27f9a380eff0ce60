"""Whole volumes in the main window: what one needs of the other."""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot

from app.batch.model import Ended
from app.batch.page import Page
from app.session.jobs import job_lines, jobs_for
from app.session.network import ask_first
from app.volume.looking import Looking
from app.volume.model import Now, VolumeAsk
from app.volume.presenter import VolumePresenter
from engine.files.folders import state_folder
from engine.workflows.cluster.places import UNENCRYPTED

if TYPE_CHECKING:
    from app.volume.view import VolumeWindow
    from app.window import MainWindow

log = logging.getLogger("app")

TITLE = "Send data to a cluster"
ADVICE = "Anybody on the way could read the images. Use a tls:// address, or go on all the same?"


class Volumes(Page):
    """A series reconstructed as a whole, and the window to look at it."""

    COMPUTING = "A volume is being computed: wait, or stop it in Tools > Whole volume."
    THING = "volume"

    closed = Signal()  # nothing is computed or written any more

    view: VolumeWindow | None

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, VolumePresenter())
        self.looking = Looking(window)
        self.presenter.table_changed.connect(self.looking.on_table)
        self.presenter.ended.connect(self._on_volume_ended)
        self.presenter.closed.connect(self.looking.exporter.request_close)
        self.looking.exporter.closed.connect(self.closed)

    def now(self) -> Now:
        """What the main window would run with."""
        window = self.window
        data, solver = window.setup.data, window.left.solver
        if data is None:
            return Now(fault="Open a series first.")
        if solver.model.choices is None:
            return Now(fault="The methods are still loading.")
        panel = window.left.acquisition()
        forms = [form for form in (panel.form, solver.form, solver.run_form) if form is not None]
        fault = next((form.problem() for form in forms if not form.valid), "")
        if fault:
            return Now(fault=fault)
        asked = jobs_for(
            [solver.value()],
            data=(data.text, data.options),
            modality=data.modality,
            slices=None,
            acquisition=panel.value(),
        )
        job, method = asked[-1], solver.model.method()
        label = method.label if method is not None else job["solver"]
        fields = dataclasses.fields(method.settings_class) if method is not None else ()
        words = [*job_lines(job, label, data.modality, not data.measured)]
        words += [f"prior {job['prior']}", f"seed {job['seed']}"]
        couples = any(field.name == "couple_z" for field in fields)
        return Now(job, data.name, ", ".join(words), data.count, couples)

    def show(self) -> None:
        super().show()
        if self.view is not None:
            self.view.panel.refresh()

    def make_view(self) -> VolumeWindow:
        from app.volume.view import VolumeWindow

        window = self.window
        view = VolumeWindow(self.presenter, self.now, window)
        view.started.connect(self.start)
        view.look_asked.connect(self.looking.open)
        for signal in (
            window.ready,
            window.data.opened,
            window.left.solver.edited,
            window.left.acquisition_edited,
        ):
            signal.connect(self._on_changed)
        return view

    @Slot()
    def _on_changed(self) -> None:
        if self.view is not None and self.view.isVisible():
            self.view.panel.refresh()

    @Slot(object)
    def start(self, asked: VolumeAsk) -> None:
        if self.presenter.reason(asked):
            return
        if asked.place.exposed:
            question = f"{asked.place.address}: {UNENCRYPTED}."
            ask_first(
                TITLE, question, ADVICE, partial(self._start, asked), self.view or self.window
            )
        else:
            self._start(asked)

    def _start(self, asked: VolumeAsk) -> None:
        usual = state_folder() / "volumes"
        if Path(asked.folder).parent == usual:
            usual.mkdir(parents=True, exist_ok=True)
        self.presenter.start(asked)
        log.info("A volume started.")

    @Slot(object)
    def _on_volume_ended(self, ended: Ended) -> None:
        if any(one.folder.path == ended.folder for one in self.looking.sources.values()):
            self.looking.refresh(ended=True)

    def request_close(self) -> None:
        self.looking.close()
        super().request_close()
