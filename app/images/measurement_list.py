"""What was measured on the images: a list of it, and the region's statistics in every pane."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QStackedLayout,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)

from app.icons import SIDE, icon
from app.images.inspector import Inspector, PaneStatistics
from app.images.measure import Measurement
from app.images.text import area_text, size_text, statistics_text, unit_of, value_text
from app.theme import tabular
from app.widgets import in_column, plain_look
from engine.spec.errors import shown

HINT = "Draw on an image with the tools above the images to measure all of them."
HEADS = ("Image", "Mean", "SD", "Min", "Max")


class StatisticsTable(QWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spacing_known = True
        self.hint = QLabel(HINT)
        self.hint.setWordWrap(True)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.table = QTableWidget(0, len(HEADS))
        self.table.setAccessibleName("Region statistics")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        plain_look(self.table)
        self.table.setFont(tabular(self.table.font()))
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.pages = QStackedLayout(self)
        self.pages.addWidget(self.hint)
        self.pages.addWidget(self.table)
        self.show_statistics([])

    @Slot(list)
    def show_statistics(self, measured: Sequence[PaneStatistics]) -> None:
        shown = [one for one in measured if one.statistics is not None]
        self.pages.setCurrentWidget(self.table if shown else self.hint)
        self.table.setRowCount(len(shown))
        for row, one in enumerate(shown):
            found = one.statistics
            assert found is not None
            numbers = (found.mean, found.sd, found.minimum, found.maximum)
            texts = [one.name, *(value_text(number, one.modality) for number in numbers)]
            for column, words in enumerate(texts):
                self._put(row, column, words)
        if shown and shown[0].statistics is not None:
            area = area_text(shown[0].statistics.area_mm2, self.spacing_known)
            unit = unit_of(shown[0].modality)
            self.table.setHorizontalHeaderLabels([f"{area}, {unit}", *HEADS[1:]])
            self.table.setToolTip(f"Values: {unit}; the region covers {area}.")

    def _put(self, row: int, column: int, words: str) -> None:
        item = self.table.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
            self.table.setItem(row, column, item)
        item.setText(words)


FIXED: Final = ("Name", "Slice", "Size")
CSV_HEADS: Final = (
    *("name", "kind", "slice", "length", "length unit", "angle degrees", "image"),
    *("mean", "SD", "minimum", "maximum", "unit", "pixels", "area", "area unit"),
)
_NUMBER: Final = Qt.ItemDataRole.UserRole


class MeasurementList(QWidget):
    def __init__(self, inspector: Inspector, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.inspector, self.link = inspector, inspector.link
        self.drawn = self.link.measurements
        self.table = _Table()
        self.table.removed.connect(self.drawn.remove_selected)
        self.rename = self._button("text", "Rename", "Give it another name. (F2)")
        self.remove = self._button("trash", "Remove", "Remove the chosen measurement. (Delete)")
        self.copy = self._button("copy", "CSV", "Copy all values as CSV, for a spreadsheet.")
        self.statistics = StatisticsTable()
        row = QHBoxLayout()
        row.setSpacing(4)
        for button in (self.rename, self.remove, self.copy):
            row.addWidget(button)
        row.addStretch(1)
        self.body = QWidget()
        in_column((self.table, 1), row, spacing=4, margins=0, parent=self.body)
        in_column((self.body, 1), (self.statistics, 1), spacing=8, margins=0, parent=self)
        self.rename.clicked.connect(self._edit)
        self.remove.clicked.connect(self.drawn.remove_selected)
        self.copy.clicked.connect(self.copy_csv)
        self.table.itemChanged.connect(self._on_edited)
        self.table.itemSelectionChanged.connect(self._on_selected)
        self.table.itemDoubleClicked.connect(self._on_double_click)
        inspector.values_changed.connect(self.refresh)
        inspector.statistics_changed.connect(self._show_statistics)
        self.refresh()

    def _button(self, picture: str, name: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setIcon(icon(picture))
        button.setIconSize(QSize(SIDE, SIDE))
        button.setText(name)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setAccessibleName(name)
        button.setToolTip(tip)
        return button

    # -- what is shown ----------------------------------------------------------------------

    def heads(self) -> list[str]:
        """Every image that anything was measured in."""
        values = self.inspector.values.values()
        return list(dict.fromkeys(one.name for found in values for one in found.values()))

    def refresh(self) -> None:
        names, rows = self.heads(), self.drawn.all
        self.body.setVisible(bool(rows))
        table = self.table
        blocker = QSignalBlocker(table)
        table.setRowCount(len(rows))
        table.setColumnCount(len(FIXED) + len(names))
        table.setHorizontalHeaderLabels([*FIXED, *names])
        for at, one in enumerate(rows):
            self._put(at, 0, one.name, editable=True).setData(_NUMBER, one.number)
            for column, words in enumerate((str(one.slice + 1), self._size(one)), 1):
                self._put(at, column, words)
            of_name = {v.name: v for v in self.inspector.values.get(one.number, {}).values()}
            for column, name in enumerate(names, len(FIXED)):
                found = of_name.get(name)
                words = statistics_text(found.statistics, found.modality) if found else ""
                self._put(at, column, words)
            if one.number == self.drawn.selected:
                table.selectRow(at)
        if self.drawn.selected is None:
            table.clearSelection()
        del blocker
        for button in (self.rename, self.remove):
            button.setEnabled(self.drawn.selected is not None)

    def _size(self, one: Measurement) -> str:
        if not one.is_area:
            return size_text(one, self.link.spacing_known)
        measured = self.inspector.values.get(one.number, {}).values()
        found = next((each.statistics for each in measured if each.statistics), None)
        return area_text(found.area_mm2, self.link.spacing_known) if found is not None else ""

    def _put(self, row: int, column: int, words: str, editable: bool = False) -> QTableWidgetItem:
        item = self.table.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            if not editable:
                item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
            self.table.setItem(row, column, item)
        item.setText(words)
        return item

    def _show_statistics(self, measured: list) -> None:
        self.statistics.spacing_known = self.link.spacing_known
        self.statistics.show_statistics(measured)

    # -- what a person does -----------------------------------------------------------------

    def _number(self, row: int) -> int | None:
        item = self.table.item(row, 0)
        return None if item is None else item.data(_NUMBER)

    def _edit(self) -> None:
        item = self.table.item(self.table.currentRow(), 0)
        if item is not None:
            self.table.editItem(item)

    def _on_edited(self, item: QTableWidgetItem) -> None:
        number = self._number(item.row())
        if item.column() == 0 and number is not None:
            self.drawn.rename(number, shown(item.text()))
            self.refresh()  # an empty name is none

    def _on_selected(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        self.drawn.select(self._number(rows[0].row()) if rows else None)

    def _on_double_click(self, item: QTableWidgetItem) -> None:
        """To the slice it was drawn on; a name is edited instead."""
        one = self.drawn.get(self._number(item.row()))
        if one is not None and item.column() > 0:
            self.link.set_slice(one.slice)

    def copy_csv(self) -> None:
        QGuiApplication.clipboard().setText(self.csv_text())
        self.link.notice.emit("The measurements are on the clipboard.")

    def csv_text(self) -> str:
        known = self.link.spacing_known
        unit, square = ("mm", "mm²") if known else ("px", "px")
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_HEADS)
        for one in self.drawn.all:
            length, angle = one.length_mm, one.angle_degrees
            line = [_plain(one.name), one.kind.value, one.slice + 1]
            line += ["", ""] if length is None else [f"{length:.6g}", unit]
            line.append("" if angle is None else f"{angle:.6g}")
            for each in self.inspector.values.get(one.number, {}).values():
                if (found := each.statistics) is not None:
                    numbers = (found.mean, found.sd, found.minimum, found.maximum)
                    values = [f"{number:.6g}" for number in numbers]
                    extent = [found.pixels, f"{found.area_mm2:.6g}", square]
                    name, of = _plain(each.name), unit_of(each.modality)
                    writer.writerow([*line, name, *values, of, *extent])
            if not one.is_area:
                writer.writerow([*line, *[""] * 9])
        return text.getvalue()


def _plain(name: str) -> str:
    """Nothing that a spreadsheet would run."""
    return f"'{name}" if name[:1] in ("=", "@", "+", "-") else name


class _Table(QTableWidget):
    removed = Signal()

    def __init__(self) -> None:
        super().__init__(0, len(FIXED))
        self.setAccessibleName("Measurements")
        self.setToolTip("Double-click a name to change it, a value to go to its slice.")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
        )
        plain_look(self)
        self.setFont(tabular(self.font()))
        self.setMinimumHeight(96)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.removed.emit()
        else:
            super().keyPressEvent(event)
