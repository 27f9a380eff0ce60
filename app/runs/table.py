"""The table of runs: which were made, how good they are, what told them apart."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QItemSelection, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QShortcut, QUndoCommand, QUndoStack
from PySide6.QtWidgets import (
    QAbstractItemView,
    QGridLayout,
    QLabel,
    QPushButton,
    QStackedLayout,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.runs.colours import SWATCH_PX
from app.runs.result_note import ResultNote
from app.runs.settings_diff import SettingsDiffDialog
from app.runs.store import RunEntry, RunStore
from app.runs.table_model import NFE, RUN, RunsModel
from app.widgets import plain_look

WIDEST = ("slice 99, R 4.27", "12 of 12", "99.99", "0.999", "999.9", "a remark")
ROW_PX = 40  # two lines
EMPTY = "No runs yet.\nSet the solver and press Run.\nEarlier runs are in the library (Ctrl+L)."

WIDEST_NAME_PX = 240
BESIDE_NAME_PX = SWATCH_PX.width() + 36  # the tick, the line, the edges


class RunsTable(QWidget):
    """Select a run to show it, two to compare their settings.

    ``undo`` is the window's undo stack; without one the table keeps its own.
    """

    shown = Signal(str)  # the run whose row was chosen
    selection_changed = Signal(list)  # ids of the selected runs
    run_library_wanted = Signal()

    def __init__(
        self, store: RunStore, undo: QUndoStack | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.store = store
        self.undo = undo or QUndoStack(self)
        self.model = RunsModel(store, self)
        self.table = QTableView(self)
        self.table.setModel(self.model)
        self._chosen: list[str] = []
        self._prepare_table()
        self.empty = QLabel(EMPTY, self)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)

        self.compareButton = QPushButton("Compare settings", self)
        self.compareButton.setAccessibleName("Compare the settings of two runs")
        self.compareButton.clicked.connect(self.compare)
        self.deleteButton = QPushButton("Remove", self)
        self.deleteButton.setAccessibleName("Remove the selected runs from this list")
        self.deleteButton.clicked.connect(self.delete_selected)
        delete = QShortcut(QKeySequence.StandardKey.Delete, self.table)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self.delete_selected)

        self.note = ResultNote(store, self)
        buttons = QGridLayout()  # three in a line would be too wide in large letters
        buttons.addWidget(self.compareButton, 0, 0)
        buttons.addWidget(self.deleteButton, 0, 1)
        self.runLibraryButton = QPushButton("Library", self)
        self.runLibraryButton.setAccessibleName("Library of all runs")
        self.runLibraryButton.setToolTip(
            "Every run that was made: open it again, or go on with it."
        )
        self.runLibraryButton.clicked.connect(self.run_library_wanted)
        buttons.addWidget(self.runLibraryButton, 1, 0)
        buttons.setColumnStretch(2, 1)
        body = QWidget(self)
        self.pages = QStackedLayout(body)
        self.pages.addWidget(self.empty)
        self.pages.addWidget(self.table)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(body, 1)
        layout.addWidget(self.note)
        layout.addLayout(buttons)

        self.table.selectionModel().selectionChanged.connect(self._on_selection)
        self.model.rowsInserted.connect(self._refresh)
        self.model.rowsRemoved.connect(self._refresh)
        store.updated.connect(self._refresh)
        self._refresh()

    def _prepare_table(self) -> None:
        table = self.table
        table.setAccessibleName("Runs")
        table.setToolTip("Select a run to show its image; select two to compare their settings.")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
        )
        table.setIconSize(SWATCH_PX)
        plain_look(table)
        table.verticalHeader().setDefaultSectionSize(ROW_PX)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        header = table.horizontalHeader()
        # By hand, not 'to contents': that would measure every cell at every live update.
        metrics = table.fontMetrics()
        for column, widest in enumerate(WIDEST):
            table.setColumnWidth(column, metrics.horizontalAdvance(widest) + 8)
        table.setColumnWidth(RUN, metrics.horizontalAdvance(WIDEST[RUN]) + BESIDE_NAME_PX)
        header.setStretchLastSection(True)

    def sizeHint(self) -> QSize:
        return QSize(320, 240)

    def selected(self) -> list[RunEntry]:
        """Newest first."""
        rows = sorted(index.row() for index in self.table.selectionModel().selectedRows(RUN))
        entries = [self.model.entry(row) for row in rows]
        return [entry for entry in entries if entry is not None]

    def select(self, run_id: str) -> None:
        self.table.selectRow(self.model.row_of(run_id))

    def mark_current(self, run_id: str) -> None:
        """The row of the run that is shown; several that were selected stay selected."""
        if run_id not in [entry.run_id for entry in self.selected()] and run_id in self.store:
            blocker = QSignalBlocker(self)
            self.select(run_id)
            del blocker

    def set_belongs(self, belongs: Callable[[RunEntry], bool]) -> None:
        """Which runs are of the open data; the others are grey and have no tick."""
        self.model.belongs = belongs

    @Slot()
    def compare(self) -> None:
        """Where the two selected runs differ, the older on the left."""
        chosen = self.selected()
        if len(chosen) == 2:
            dialog = SettingsDiffDialog(chosen[1], chosen[0], self)
            dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            dialog.show()

    @Slot()
    def delete_selected(self) -> None:
        chosen = [entry.run_id for entry in self.selected() if not entry.running]
        if chosen:
            self.undo.push(DeleteRuns(self.store, chosen))

    @Slot(QItemSelection, QItemSelection)
    def _on_selection(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        self._refresh()
        chosen = [entry.run_id for entry in self.selected()]
        before, self._chosen = self._chosen, chosen
        self.selection_changed.emit(chosen)
        if len(chosen) == 1 and chosen != before:  # a row that comes in above tells, too
            self.shown.emit(chosen[0])

    def _make_room(self) -> None:
        """What stands in the first columns is seen whole: the column of notes gives way."""
        metrics = self.table.fontMetrics()
        for column, beside, most in ((RUN, BESIDE_NAME_PX, WIDEST_NAME_PX), (NFE, 8, 100)):
            rows = range(self.model.rowCount())
            cells = (str(self.model.index(row, column).data()) for row in rows)
            lines = (line for words in cells for line in words.splitlines())
            wanted = min(max(map(metrics.horizontalAdvance, lines), default=0), most) + beside
            if wanted > self.table.columnWidth(column):
                self.table.setColumnWidth(column, wanted)

    @Slot()
    def _refresh(self) -> None:
        self._make_room()
        self.pages.setCurrentWidget(self.table if self.model.rowCount() else self.empty)
        chosen = self.selected()
        self.compareButton.setEnabled(len(chosen) == 2)
        self.compareButton.setToolTip(
            "List the settings in which the two selected runs differ."
            if len(chosen) == 2
            else f"Select exactly two runs to compare; {len(chosen)} selected."
        )
        ended = [entry for entry in chosen if not entry.running]
        self.deleteButton.setEnabled(bool(ended))
        if ended:
            reason = "Take the selected runs off this list; they stay in the library."
        elif chosen:
            reason = "A run can be removed when it has ended."
        else:
            reason = "Select the runs to remove."
        self.deleteButton.setToolTip(reason)


class DeleteRuns(QUndoCommand):
    """Keeps what it removed until the undo stack forgets it; files on disk stay."""

    def __init__(self, store: RunStore, run_ids: list[str]) -> None:
        names = [entry.name for entry in store if entry.run_id in run_ids]
        super().__init__(f"Remove {', '.join(names)}")
        self._store, self._ids = store, run_ids
        self._removed: list[tuple[int, RunEntry]] = []

    def redo(self) -> None:
        there = [run_id for run_id in self._ids if run_id in self._store]
        self._removed = [self._store.remove(run_id) for run_id in there]

    def undo(self) -> None:
        for index, entry in reversed(self._removed):
            if entry.run_id not in self._store:  # opened from the library meanwhile
                self._store.add(entry, index)
