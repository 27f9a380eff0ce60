"""What the header of the slice says, to search in."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt, Signal, Slot
from PySide6.QtGui import (
    QHideEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QTableView,
    QWidget,
)

from app.data.opened import Opened
from app.data.tags import TagRow, tag_rows
from app.tasks import Newest, Tasks
from app.theme import tabular
from app.widgets import in_column, plain_look

HEADINGS: Final = ("Tag", "Name", "VR", "Value")
NOTHING: Final = "Open a DICOM series: its tags are listed here."
NO_HEADER: Final = "These data are not DICOM: they have no tags."
HIDDEN: Final = "The patient's data and all names are hidden (View, Hide the patient's name)."


class TagWindow(QWidget):
    """Follows the slice while it is open."""

    shown_changed = Signal()  # other rows are there

    def __init__(self, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("DICOM tags")
        self.data: Opened | None = None
        self.slice, self.masked = 0, True
        self.rows: list[TagRow] = []
        self._asked = Newest(tasks)
        self.search, self.table, self.note = QLineEdit(), QTableView(), QLabel(NOTHING)
        self.model = QStandardItemModel(0, len(HEADINGS), self)
        self.model.setHorizontalHeaderLabels(HEADINGS)
        self.found = QSortFilterProxyModel(self)
        self.found.setSourceModel(self.model)
        self.found.setFilterKeyColumn(-1)  # in every column
        self.found.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._build()
        self.resize(820, 640)

    def _build(self) -> None:
        self.search.setPlaceholderText("Search: a name, a number such as 0018,0050, or a value")
        self.search.setAccessibleName("Search in the tags")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._on_search)
        self.table.setModel(self.found)
        self.table.setAccessibleName("DICOM tags")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setFont(tabular(self.table.font()))
        plain_look(self.table)
        header = self.table.horizontalHeader()
        header.setStretchLastSection(True)
        for column, width in ((0, 140), (1, 260), (2, 40)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            self.table.setColumnWidth(column, width)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        in_column(self.search, self.table, self.note, spacing=8, margins=8, parent=self)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self).activated.connect(
            self.search.setFocus
        )
        QShortcut(QKeySequence(QKeySequence.StandardKey.Close), self).activated.connect(self.close)

    # -- what is shown ----------------------------------------------------------------------

    @Slot(object)
    def set_data(self, data: Opened | None) -> None:
        self.data = data
        self.refresh()

    @Slot(int)
    def set_slice(self, number: int) -> None:
        self.slice = number
        self.refresh()

    def set_masked(self, masked: bool) -> None:
        self.masked = masked
        self.refresh()

    def refresh(self) -> None:
        if not self.isVisible():
            return
        data, number, masked = self.data, self.slice, self.masked
        read = data.dataset.headers if data is not None else None
        if data is None or read is None or number >= data.count:
            self._asked.drop()
            self._show([], NOTHING if data is None else NO_HEADER)
            return
        words = f"Slice {number + 1} of {data.count}. {HIDDEN if masked else ''}"
        self._asked.ask(
            "Reading the tags",
            lambda: tag_rows(read(number), masked),
            partial(self._show, words=words),
            lambda sentence, details: self._show([], sentence),
        )

    def _show(self, rows: list[TagRow], words: str) -> None:
        self.note.setText(words)
        if rows != self.rows:
            self.rows = rows
            place = self.table.verticalScrollBar().value()
            self.model.setRowCount(0)
            for row in rows:
                cells = [row.tag, f"{'    ' * row.depth}{row.name}", row.vr, row.value]
                items = [QStandardItem(words) for words in cells]
                items[-1].setToolTip(f"<p>{_escaped(row.value)}</p>" if row.value else "")
                self.model.appendRow(items)
            self.table.verticalScrollBar().setValue(place)  # the same tags of the next slice
        self.shown_changed.emit()

    @Slot(str)
    def _on_search(self, words: str) -> None:
        self.found.setFilterFixedString(words.strip())

    def shown_rows(self) -> list[tuple[str, ...]]:
        """What is to be seen, as text."""
        root = QModelIndex()
        return [
            tuple(
                str(self.found.index(row, column, root).data()) for column in range(len(HEADINGS))
            )
            for row in range(self.found.rowCount(root))
        ]

    # -- Qt ---------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._asked.drop()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
