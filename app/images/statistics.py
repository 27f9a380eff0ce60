"""The region's statistics in every pane at once, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QStackedLayout,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.images.inspector import PaneStatistics
from app.images.text import area_text, unit_of, value_text
from app.theme import tabular
from app.widgets import plain_look

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
