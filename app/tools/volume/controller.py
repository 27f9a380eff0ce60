"""Whole volumes in the main window: what one needs of the other."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QModelIndex, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QPushButton,
    QTableView,
    QWidget,
)

from app.background import Ended, JobPresenter, Mailbox, Table
from app.context import AppContext
from app.session.jobs import job_lines, jobs_for
from app.theme import tabular
from app.tools.page import Page
from app.tools.table_window import ResultsModel, TableWindow
from app.tools.volume.browser import VolumeBrowser
from app.tools.volume.model import COMPUTING, CurrentSettings, VolumeRequest, VolumeTable
from app.tools.volume.panel import VolumePanel
from app.widgets import ask_first, in_column, plain_look
from engine.files.folders import state_folder
from engine.spec.control import RunControl
from engine.workflows.cluster.compute_targets import UNENCRYPTED, ClusterAddress

log = logging.getLogger("app")

TITLE = "Send data to a cluster"
ADVICE = "Anybody on the way could read the images. Use a tls:// address, or go on all the same?"


def _volume(asked: VolumeRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    from app.tools.volume.job import run_volume

    return run_volume(asked, control, mailbox)


class Volumes(Page):
    """A series reconstructed as a whole, and the window to look at it."""

    COMPUTING = "A volume is being computed: wait, or stop it in Tools > Whole volume."
    GOING_ON = "A volume is being computed: wait, or stop it first."
    THING = "volume"

    view: VolumeWindow | None

    def __init__(self, context: AppContext) -> None:
        super().__init__(context, _volume)
        self.browser = VolumeBrowser(context)
        self.presenter.table_changed.connect(self.browser.on_table)

    def now(self) -> CurrentSettings:
        """What the main window would run with."""
        left, data = self.context.left, self.context.setup.data
        solver, panel = left.solver, left.acquisition()
        if data is None:
            return CurrentSettings(fault="Open a series first.")
        if solver.model.choices is None:
            return CurrentSettings(fault="The methods are still loading.")
        forms = [form for form in (panel.form, solver.form, solver.run_form) if form is not None]
        fault = next((form.problem() for form in forms if not form.valid), "")
        if fault:
            return CurrentSettings(fault=fault)
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
        whole = solver.model.complete(job)
        seconds = self.context.paces.seconds(whole, data.modality, data.image_size)
        return CurrentSettings(job, data.name, ", ".join(words), data.count, couples, seconds)

    def show(self) -> None:
        super().show()
        if self.view is not None:
            self.view.panel.refresh()

    def make_view(self) -> VolumeWindow:
        context = self.context
        view = VolumeWindow(self.presenter, self.now, context.window)
        view.started.connect(self.start)
        view.look_asked.connect(self.browser.open)
        for signal in (
            context.ready,
            context.opened,
            context.left.solver.edited,
            context.left.acquisition_edited,
        ):
            signal.connect(self._on_changed)
        return view

    @Slot()
    def _on_changed(self) -> None:
        if self.view is not None and self.view.isVisible():
            self.view.panel.refresh()

    @Slot(object)
    def start(self, asked: VolumeRequest) -> None:
        if self.presenter.reason(asked):
            return
        go_on = partial(self._start, asked)
        if isinstance(asked.where, ClusterAddress) and asked.exposed:
            question = f"{asked.where.address}: {UNENCRYPTED}."
            ask_first(TITLE, question, ADVICE, go_on, self.view or self.context.window)
        else:
            go_on()

    def _start(self, asked: VolumeRequest) -> None:
        usual = state_folder() / "volumes"
        if Path(asked.folder).parent == usual:
            usual.mkdir(parents=True, exist_ok=True)
        self.presenter.start(asked)
        log.info("A volume started.")

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        super()._on_ended(ended)
        folder = Path(self.presenter.request.folder).absolute()
        if any(one.place == folder for one in self.browser.sources.values()):
            self.browser.refresh(ended=True)

    def close(self) -> None:
        self.browser.close()
        super().close()


WORKERS_PX = 140
STATUS_COLUMN = 1


class VolumeWindow(TableWindow):
    """Every slice is a row; a double-click or Enter shows it in the volume."""

    TITLE = "Whole volume"
    THING = "volume"
    CASES = "slices"
    EMPTY = "Every slice becomes a row here, with its figures when it is stored."
    START_TIP = "Compute the slices that are not stored yet."
    CANCEL_TIP = "Stop after this iteration; every finished slice stays, and Start goes on."
    TABLE_TIP = "Double-click a row, or press Enter, to see it in the volume."
    READING = "Reading the data …"
    SIZE = (1120, 640)

    look_asked = Signal(str, int)  # folder, row of the table; -1 for none

    panel: VolumePanel

    def __init__(
        self,
        presenter: JobPresenter,
        now: Callable[[], CurrentSettings],
        parent: QWidget | None = None,
    ) -> None:
        self._now = now
        self.dashboard_url = ""
        super().__init__(presenter, parent)
        self.cancel.setText("Stop")
        self.cancel.setAccessibleName("Stop")
        self.table.activated.connect(self._on_activated)
        self.look.clicked.connect(lambda: self.look_asked.emit(self._folder, -1))
        self.dashboard.clicked.connect(
            lambda: QDesktopServices.openUrl(QUrl(self.dashboard_url, QUrl.ParsingMode.StrictMode))
        )

    def make_panel(self) -> VolumePanel:
        return VolumePanel(self._now)

    def beside_table(self) -> QWidget:
        self.workers_model = ResultsModel(self)
        self.workers = QTableView()
        self.workers.setModel(self.workers_model)
        self.workers.setFont(tabular(self.workers.font()))
        self.workers.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.workers.setFixedHeight(WORKERS_PX)
        self.workers.setAccessibleName("Workers")
        self.workers.setToolTip("The processes that compute the slices.")
        header = self.workers.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        plain_look(self.workers)
        self.dashboard = QPushButton("Dask's dashboard…")
        self.dashboard.setAccessibleName("Dask's dashboard")
        self.dashboard.setToolTip("Open the scheduler's own page in the browser.")
        self.look = QPushButton("Look at the volume")
        self.look.setAccessibleName("Look at the volume")
        whole = QWidget()
        in_column((self.pages, 1), self.workers, self.dashboard, spacing=8, margins=0, parent=whole)
        self._show_workers(Table(), "")
        return whole

    def buttons(self) -> list[QPushButton]:
        return [self.look, *super().buttons()]

    def clear(self) -> None:
        self._show_workers(Table(), "")

    def follow(self) -> None:
        """The first slice in hand; whoever looks at another row is left in peace."""
        if self.table.selectionModel().hasSelection():
            return
        rows = self.model.table.rows
        busy = next((n for n, row in enumerate(rows) if COMPUTING in row), None)
        if busy is not None:
            self.table.scrollTo(self.model.index(busy, 0))

    @Slot(object)
    def _on_table(self, table: Table) -> None:
        before = self.model.table
        super()._on_table(table)
        if isinstance(table, VolumeTable):
            if table.stored and not (isinstance(before, VolumeTable) and before.stored):
                self._fit_columns()  # the first figures are wider than none
                header = self.table.horizontalHeader()
                header.setSectionResizeMode(STATUS_COLUMN, QHeaderView.ResizeMode.Stretch)
            self._show_workers(table.workers, table.dashboard)
            self._refresh()

    @Slot(object)
    def _on_ended(self, ended: Ended) -> None:
        super()._on_ended(ended)
        self._show_workers(self.workers_model.table, "")  # the page ends with the run

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        if self.look.isEnabled():
            self.look_asked.emit(self._folder, index.row())

    @Slot()
    def _refresh(self) -> None:
        super()._refresh()
        table = self.model.table
        stored = isinstance(table, VolumeTable) and table.stored > 0
        self.look.setEnabled(stored)
        self.look.setToolTip(
            "Axial, coronal and sagittal cuts; they fill while slices are stored."
            if stored
            else "No slice is stored yet."
        )

    def _show_workers(self, workers: Table, dashboard: str) -> None:
        self.workers_model.show_table(workers)
        self.workers.setVisible(bool(workers.rows))
        self.dashboard_url = dashboard
        self.dashboard.setVisible(bool(dashboard))
