"""A volume being computed, as a window of its own: ask, watch the slices come, look at them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.batch.model import Ended, Table
from app.batch.presenter import BatchPresenter
from app.batch.table_model import ResultsModel
from app.batch.table_window import TableWindow
from app.tables import plain_look
from app.theme import tabular
from app.volume.model import COMPUTING, Now, VolumeTable
from app.volume.panel import VolumePanel

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
        presenter: BatchPresenter,
        now: Callable[[], Now],
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
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.pages, 1)
        column.addWidget(self.workers)
        column.addWidget(self.dashboard)
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
