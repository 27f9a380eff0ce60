"""The table of an experiment, as it stands."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from app.batch.model import Table
from app.tips import plain_tip

Index = QModelIndex | QPersistentModelIndex
_ROLE = Qt.ItemDataRole
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ResultsModel(QAbstractTableModel):
    """Rows grow while the columns stay; new columns begin the table again."""

    table = Table()

    def show_table(self, table: Table) -> None:
        old, more = len(self.table.rows), len(table.rows)
        if table.headings != self.table.headings or more < old:
            self.beginResetModel()
            self.table = table
            self.endResetModel()
            return
        if more > old:
            self.beginInsertRows(QModelIndex(), old, more - 1)
        self.table = table
        if more > old:
            self.endInsertRows()
        if old:
            self.dataChanged.emit(self.index(0, 0), self.index(old - 1, self.columnCount() - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.table.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.table.headings)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == _ROLE.DisplayRole:
            return self.table.headings[section]
        return self._alignment(section) if role == _ROLE.TextAlignmentRole else None

    def data(self, index: Index, role: int = _ROLE.DisplayRole) -> Any:
        if role in (_ROLE.DisplayRole, _ROLE.ToolTipRole):
            text = self.table.rows[index.row()][index.column()]
            return plain_tip(text) if role == _ROLE.ToolTipRole else text
        return self._alignment(index.column()) if role == _ROLE.TextAlignmentRole else None

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        return _LEFT if column in self.table.worded else _RIGHT
