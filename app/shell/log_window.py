"""The log as a window of its own."""

from __future__ import annotations

import logging
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QUrl, Slot
from PySide6.QtGui import (
    QDesktopServices,
    QGuiApplication,
    QHideEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableView,
    QWidget,
)

from app.shell.find_bar import FindBar
from app.shell.log import KEPT_LINES, LogBook, LogLine
from app.theme import tabular
from app.widgets import in_column, in_row, plain_look

HEADINGS: Final = ("Time", "Level", "Text")
TIME, LEVEL, TEXT = range(3)
LEVELS: Final = (
    ("Everything", logging.NOTSET),
    ("Warnings and worse", logging.WARNING),
    ("Errors only", logging.ERROR),
)
MARKS: Final = {logging.WARNING: "⚠ ", logging.ERROR: "✖ ", logging.CRITICAL: "✖ "}
Index = QModelIndex | QPersistentModelIndex
NOWHERE: Final = QModelIndex()


class LogModel(QAbstractTableModel):
    """The lines of the book at or above a level."""

    def __init__(self, book: LogBook, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.book = book
        self.level = logging.NOTSET
        self.lines: list[LogLine] = []
        self._seen = -1

    def rowCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        return 0 if parent.isValid() else len(HEADINGS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return HEADINGS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        line = self.lines[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            first = f"{line.source}: {line.text.partition(chr(10))[0]}"
            mark = MARKS.get(line.level, "")
            return (line.clock, f"{mark}{line.level_name}", first)[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return line.text
        return None

    def set_level(self, level: int) -> None:
        self.beginResetModel()
        self.level, self._seen = level, -1
        self.lines = self._fresh()
        self.endResetModel()

    def take(self) -> None:
        """Show what has come since the last time."""
        fresh = self._fresh()
        if not fresh:
            return
        first = len(self.lines)
        self.beginInsertRows(NOWHERE, first, first + len(fresh) - 1)
        self.lines += fresh
        self.endInsertRows()
        if (spare := len(self.lines) - KEPT_LINES) > 0:
            self.beginRemoveRows(NOWHERE, 0, spare - 1)
            del self.lines[:spare]
            self.endRemoveRows()

    def _fresh(self) -> list[LogLine]:
        lines = self.book.after(self._seen)
        if lines:
            self._seen = lines[-1].number
        return [line for line in lines if line.level >= self.level]


class LogWindow(QWidget):
    """Follows the log while its last line is in sight; takes lines only while it is shown."""

    def __init__(self, book: LogBook, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("Log")
        self.resize(800, 480)
        self.book = book
        self.model = LogModel(book, self)
        self._listening = False
        self.levels = QComboBox(self)
        self.levels.setAccessibleName("Level")
        self.levels.setToolTip("Show only lines that are at least as serious as this.")
        for name, level in LEVELS:
            self.levels.addItem(name, level)
        self.finder = FindBar("the log", self)
        self.table = QTableView(self)
        self._prepare_table()
        self.copyButton = QPushButton("Copy", self)
        self.copyButton.setAccessibleName("Copy lines")
        self.copyButton.setToolTip("Copy the selected lines, or all that are shown. (Ctrl+C)")
        self.folderButton = QPushButton("Open log folder", self)
        self.folderButton.setToolTip(
            "Show the folder with the log files in the system's file manager."
        )
        note = QLabel("Names of patients and of data files are left out.", self)

        head = in_row(self.levels, (self.finder, 1), spacing=8)
        foot = in_row((note, 1), self.copyButton, self.folderButton, spacing=8)
        in_column(head, (self.table, 1), foot, spacing=8, margins=8, parent=self)

        self.levels.currentIndexChanged.connect(self._on_level)
        self.finder.wanted.connect(self.find_line)
        self.copyButton.clicked.connect(self.copy)
        self.folderButton.clicked.connect(self.open_folder)
        copy = QShortcut(QKeySequence.StandardKey.Copy, self.table)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy)
        close = QShortcut(QKeySequence.StandardKey.Close, self)
        close.activated.connect(self.close)

    def _prepare_table(self) -> None:
        table = self.table
        table.setModel(self.model)
        table.setAccessibleName("Log lines")
        table.setToolTip("What the program did; the newest line is the last.")
        table.setFont(tabular(table.font()))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        plain_look(table)
        table.setWordWrap(False)
        header = table.horizontalHeader()
        metrics = table.fontMetrics()
        table.setColumnWidth(TIME, metrics.horizontalAdvance("00:00:00") + 24)
        table.setColumnWidth(LEVEL, metrics.horizontalAdvance("✖ critical") + 24)
        header.setSectionResizeMode(TEXT, QHeaderView.ResizeMode.Stretch)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._listening:
            self._listening = True
            self.book.grown.connect(self._on_grown)
        self.model.take()
        self.table.scrollToBottom()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._listening:
            self._listening = False
            self.book.grown.disconnect(self._on_grown)

    @Slot()
    def _on_grown(self) -> None:
        bar = self.table.verticalScrollBar()
        follow = bar.value() == bar.maximum()
        self.model.take()
        if follow:
            self.table.scrollToBottom()

    @Slot()
    def _on_level(self) -> None:
        self.model.set_level(self.levels.currentData())
        self.table.scrollToBottom()

    @Slot(str, bool)
    def find_line(self, words: str, backwards: bool = False) -> None:
        """Select the next line with these words, going round at the end."""
        lines = self.model.lines
        start = self.table.currentIndex().row()
        if start < 0 and backwards:
            start = 0
        step = -1 if backwards else 1
        for distance in range(1, len(lines) + 1):
            row = (start + step * distance) % len(lines)
            if words.casefold() in str(lines[row]).casefold():
                self.table.selectRow(row)
                self.finder.say("")
                return
        self.finder.say("not found")

    @Slot()
    def copy(self) -> None:
        rows = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        chosen = [self.model.lines[row] for row in rows] or self.model.lines
        QGuiApplication.clipboard().setText("\n".join(map(str, chosen)))

    @Slot()
    def open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.book.folder)))
