"""The runs of the library as rows of a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QImage, QPixmap

from app.runs.kept import THUMBNAIL_PX
from app.runs.store import RunStore
from app.runs.table_model import calls_text, number_text
from app.widgets import plain_tip
from engine.files.budget import size_in_words
from engine.files.run_library import RunLibrary
from engine.files.run_library_entry import RUNNING, THUMBNAIL, LibraryEntry

Index = QModelIndex | QPersistentModelIndex
HEADINGS: Final = (
    *("Data", "Slice", "Views or R", "Method", "NFE", "Status"),
    *("PSNR\ndB", "SSIM", "Time\ns", "Made", "Size", "Note"),
)
DATA, SLICE, SCAN, METHOD, NFE, STATUS, PSNR, SSIM, TIME, MADE, SIZE, NOTE = range(len(HEADINGS))
HEADING_TIPS: Final = (
    "What the run was made of; the picture is its result.",
    "Which slices, counted from 1.",
    "Views and their arc, or the true acceleration: all of k-space over what was measured.",
    "How it was reconstructed.",
    "Denoiser calls made, and asked for where that is more.",
    "How the run ended.",
    "Peak signal-to-noise ratio against the reference, in decibel: higher is closer.",
    "Structural similarity to the reference: 1 is identical.",
    "Seconds this run has computed, without pauses.",
    "When the run was started.",
    "What it takes on the disk.",
    "Your own remark; F2 to write.",
)
PICTURE_PX: Final = 48
PINNED: Final = "📌 "
RIGHT: Final = (NFE, PSNR, SSIM, TIME, SIZE)
MOST_PICTURES: Final = 500  # in memory; more are read again
_ROLE = Qt.ItemDataRole


class LibraryModel(QAbstractTableModel):
    """``names`` are the methods' own; a run that goes on here is told by the ``store``."""

    note_written = Signal(str, str)  # id, text

    def __init__(
        self,
        library: RunLibrary,
        store: RunStore,
        names: Callable[[], Mapping[str, str]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.run_library, self.store, self.names = library, store, names
        self.entries: list[LibraryEntry] = []
        self._pictures: dict[str, QPixmap] = {}
        store.grown.connect(self._on_grown)

    def show(self, entries: list[LibraryEntry]) -> None:
        """Other rows; where they are the same runs, the selection stays."""
        if [entry.id for entry in entries] != [entry.id for entry in self.entries]:
            self.beginResetModel()
            self.entries = entries
            self.endResetModel()
        elif entries != self.entries:
            self.entries = entries
            last = self.index(len(entries) - 1, len(HEADINGS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.entries)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(HEADINGS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == _ROLE.DisplayRole:
            return HEADINGS[section]
        return HEADING_TIPS[section] if role == _ROLE.ToolTipRole else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() == NOTE else flags

    def data(self, index: Index, role: int = _ROLE.DisplayRole) -> Any:
        if not 0 <= index.row() < len(self.entries):
            return None
        entry, column = self.entries[index.row()], index.column()
        if role == _ROLE.DisplayRole:
            return self.text(entry, column)
        if role == _ROLE.EditRole and column == NOTE:
            return entry.note
        if role == _ROLE.DecorationRole and column == DATA:
            return self._picture(entry)
        if role == _ROLE.TextAlignmentRole and column in RIGHT:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == _ROLE.ToolTipRole:
            return plain_tip(self._tip(entry, column))
        if role == _ROLE.AccessibleTextRole:
            heading = HEADINGS[column].replace("\n", " ")
            return f"{heading}: {self.text(entry, column) or 'none'}"
        return None

    def setData(self, index: Index, value: Any, role: int = _ROLE.EditRole) -> bool:
        if role != _ROLE.EditRole or index.column() != NOTE:
            return False
        self.note_written.emit(self.entries[index.row()].id, str(value).strip())
        return True

    def text(self, entry: LibraryEntry, column: int) -> str:
        if column == DATA:
            return (PINNED if entry.pinned else "") + (entry.data or "unknown")
        if column == SLICE:
            return entry.slices
        if column == SCAN:
            return entry.scan
        if column == METHOD:
            return self.names().get(entry.solver, entry.solver)
        if column == NFE:
            live = self.store.get(entry.id) if entry.status == RUNNING else None
            done = live.nfe if live is not None else entry.done
            return calls_text(done, entry.asked)
        if column == STATUS:
            return entry.status
        if column == PSNR:
            return number_text(entry.psnr, 2)
        if column == SSIM:
            return number_text(entry.ssim, 3)
        if column == TIME:
            return number_text(entry.seconds, 1)
        if column == MADE:
            return time.strftime("%Y-%m-%d %H:%M", entry.started)
        if column == SIZE:
            return size_in_words(entry.bytes)
        return entry.note

    def _tip(self, entry: LibraryEntry, column: int) -> str:
        if column == DATA:
            return entry.input
        if column == STATUS and entry.message:
            return f"{entry.status}: {entry.message}"
        return self.text(entry, column)

    def _picture(self, entry: LibraryEntry) -> QPixmap | None:
        key = f"{entry.id} {entry.signature}"
        if key not in self._pictures:
            if len(self._pictures) > MOST_PICTURES:
                self._pictures.clear()
            place = self.run_library.folder(entry.id) / f"{entry.id}{THUMBNAIL}"
            picture = QPixmap.fromImage(QImage(str(place)))
            picture.setDevicePixelRatio(THUMBNAIL_PX / PICTURE_PX)
            self._pictures[key] = picture
        found = self._pictures[key]
        return None if found.isNull() else found

    @Slot(list)
    def _on_grown(self, run_ids: list[str]) -> None:
        for row, entry in enumerate(self.entries):
            if entry.id in run_ids:
                self.dataChanged.emit(self.index(row, NFE), self.index(row, NFE))
