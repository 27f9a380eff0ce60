"""A folder of inputs as a window of its own: ask, watch the table fill, open a result."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.batch.model import Table
from app.batch.presenter import BatchPresenter
from app.batch.table_window import TableWindow
from app.folder.model import FolderTable, Now
from app.folder.panel import FolderPanel


class FolderWindow(TableWindow):
    """Every input is a row; a double-click or Enter shows its files."""

    TITLE = "Folder of inputs"
    THING = "folder"
    EMPTY = "Every input becomes a row here, with what came of it."
    START_TIP = "Reconstruct every input that is not done yet."
    CANCEL_TIP = "Stop after this iteration; Start goes on from there."
    TABLE_TIP = "Double-click a row, or press Enter, to see its files."
    READING = "Looking for inputs …"
    CANCELLED = "Stopped: what is done is kept, and Start goes on from there."
    SIZE = (1120, 560)

    panel: FolderPanel

    def __init__(
        self,
        presenter: BatchPresenter,
        now: Callable[[], Now | None],
        parent: QWidget | None = None,
    ) -> None:
        self._now = now
        super().__init__(presenter, parent)
        self.cancel.setText("Stop")
        self.cancel.setAccessibleName("Stop")
        self.table.activated.connect(self._on_activated)
        self.table.horizontalHeader().setStretchLastSection(True)  # the reasons are long

    def make_panel(self) -> FolderPanel:
        return FolderPanel(self._now)

    @Slot(object)
    def _on_table(self, table: Table) -> None:
        few = len(self.model.table.rows) < len(table.rows)
        super()._on_table(table)
        if few:
            self._fit_columns()

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        table = self.model.table
        if isinstance(table, FolderTable) and table.folders[index.row()]:
            QDesktopServices.openUrl(QUrl.fromLocalFile(table.folders[index.row()]))
        else:
            self._say("This input has no results to show.")
