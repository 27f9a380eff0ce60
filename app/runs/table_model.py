"""The runs as rows of a table, the newest on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Slot,
)
from PySide6.QtGui import QGuiApplication, QPalette, QPixmap

from app.runs.colours import Dash, swatch
from app.runs.store import RunEntry, RunStore
from app.theme import tabular
from app.widgets import plain_tip
from engine.files.record_words import slice_words
from engine.files.run_library_entry import short_name
from engine.spec.numbers import regions_in_words

Index = QModelIndex | QPersistentModelIndex
HEADINGS: Final = ("Run", "NFE", "PSNR\ndB", "SSIM", "Time\ns", "Note")
RUN, NFE, PSNR, SSIM, TIME, NOTE = range(len(HEADINGS))
SAID: Final = ("done", "waiting", "running")  # states that need no word
HEADING_TIPS: Final = (
    "Line colour and method, slices and scan; tick it to show its image and curves.",
    "Denoiser calls made, of those asked for, and how the run ended.",
    "Peak signal-to-noise ratio against the reference, in decibel: higher is closer.",
    "Structural similarity to the reference: 1 is identical.",
    "Seconds this run has computed, without pauses.",
    "Your own remark; double-click or F2 to write.",
)
SHORT: Final = {"finished early": "early"}
_ROLE = Qt.ItemDataRole


class RunsModel(QAbstractTableModel):
    def __init__(self, store: RunStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self.belongs: Callable[[RunEntry], bool] = lambda entry: True
        self._ids = [entry.run_id for entry in store][::-1]
        self._swatches: dict[tuple[str, Dash], QPixmap] = {}  # a new one is scaled at every paint
        store.added.connect(self._on_listed)
        store.removed.connect(self._on_listed)
        store.updated.connect(self._on_updated)
        store.grown.connect(self._on_grown)

    def entry(self, row: int) -> RunEntry | None:
        return self.store.get(self._ids[row]) if 0 <= row < len(self._ids) else None

    def _swatch(self, colour: str, dash: Dash) -> QPixmap:
        if (colour, dash) not in self._swatches:
            self._swatches[colour, dash] = swatch(colour, dash, 2.0)
        return self._swatches[colour, dash]

    def refresh(self) -> None:
        """Other data are open: other runs belong to them."""
        if self._ids:
            self.dataChanged.emit(
                self.index(0, 0), self.index(len(self._ids) - 1, len(HEADINGS) - 1)
            )

    def row_of(self, run_id: str) -> int:
        return self._ids.index(run_id) if run_id in self._ids else -1

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._ids)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(HEADINGS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == _ROLE.DisplayRole:
            return HEADINGS[section]
        if role == _ROLE.ToolTipRole:
            return HEADING_TIPS[section]
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        if index.column() == NOTE:
            flags |= Qt.ItemFlag.ItemIsEditable
        entry = self.entry(index.row())
        if index.column() == RUN and entry is not None and self.belongs(entry):
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        return flags

    def data(self, index: Index, role: int = _ROLE.DisplayRole) -> Any:
        entry = self.entry(index.row())
        if entry is None:
            return None
        column = index.column()
        if role == _ROLE.DisplayRole or (role == _ROLE.EditRole and column == NOTE):
            return shown_text(entry, column, self.belongs(entry))
        if role == _ROLE.ForegroundRole and not self.belongs(entry):
            return QGuiApplication.palette().brush(
                QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text
            )
        if role == _ROLE.DecorationRole and column == RUN:
            return self._swatch(entry.colour, entry.dash)
        if role == _ROLE.CheckStateRole and column == RUN and self.belongs(entry):
            return Qt.CheckState.Checked if entry.visible else Qt.CheckState.Unchecked
        if role == _ROLE.TextAlignmentRole and column in (NFE, PSNR, SSIM, TIME):
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == _ROLE.FontRole and column in (NFE, PSNR, SSIM, TIME):
            return _tabular()
        if role == _ROLE.ToolTipRole:
            return plain_tip(describe(entry))
        if role == _ROLE.AccessibleDescriptionRole:
            return describe(entry)
        return None

    def setData(self, index: Index, value: Any, role: int = _ROLE.EditRole) -> bool:
        entry = self.entry(index.row())
        if entry is None:
            return False
        if role == _ROLE.EditRole and index.column() == NOTE:
            self.store.change(entry.run_id, note=str(value).strip())
            return True
        if role == _ROLE.CheckStateRole and index.column() == RUN:
            self.store.change(entry.run_id, visible=Qt.CheckState(value) == Qt.CheckState.Checked)
            return True
        return False

    @Slot(str)
    def _on_listed(self, run_id: str) -> None:
        ids = [entry.run_id for entry in self.store][::-1]
        if run_id in ids:
            row = ids.index(run_id)
            self.beginInsertRows(QModelIndex(), row, row)
            self._ids = ids
            self.endInsertRows()
        elif run_id in self._ids:
            row = self._ids.index(run_id)
            self.beginRemoveRows(QModelIndex(), row, row)
            self._ids = ids
            self.endRemoveRows()

    @Slot(str)
    def _on_updated(self, run_id: str) -> None:
        row = self.row_of(run_id)
        if row >= 0:
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(HEADINGS) - 1))

    @Slot(list)
    def _on_grown(self, run_ids: list[str]) -> None:
        for run_id in run_ids:
            row = self.row_of(run_id)
            if row >= 0:
                self.dataChanged.emit(self.index(row, NFE), self.index(row, TIME))


def _tabular() -> Any:
    return tabular(QGuiApplication.font())


def shown_text(entry: RunEntry, column: int, belongs: bool = True) -> str:
    """A cell with its second line: slices and scan of a run, and how it ended."""
    text = cell_text(entry, column)
    if column == RUN:
        slices = slice_words(entry.slices)
        count = "slice" if len(entry.slices) == 1 else "slices"
        data = "" if belongs else short_name(str(entry.job.get("input", "")))
        said = [data, slices and f"{count} {slices}", entry.scan]
    elif column == NFE:
        said = [] if entry.status in SAID else [SHORT.get(entry.status, entry.status)]
    else:
        return text
    return "\n".join([text, ", ".join(word for word in said if word)]).strip()


def cell_text(entry: RunEntry, column: int) -> str:
    if column == RUN:
        return entry.name
    if column == NFE:
        return calls_text(entry.nfe, entry.job.get("settings", {}).get("nfe"))
    if column == PSNR:
        return number_text(entry.metric("psnr"), 2)
    if column == SSIM:
        return number_text(entry.metric("ssim"), 3)
    if column == TIME:
        return number_text(entry.seconds or entry.history.total("seconds_step"), 1)
    return entry.note


def calls_text(done: int | None, asked: Any) -> str:
    """'12', or '5 of 12': what was made, beside what was asked for."""
    if done is None:
        return "–"
    return f"{done} of {asked}" if isinstance(asked, int) and done != asked else str(done)


def number_text(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def describe(entry: RunEntry) -> str:
    """How the run went, how good it is inside the body, and what is to be said about it."""
    if entry.status == "failed":
        return f"{entry.name} failed: {entry.message}"
    said = [*regions_in_words(entry.metrics), *entry.verdicts.values()]
    facts = [entry.prior and f"Prior {entry.prior}."]
    return "\n".join([f"{entry.name}: {ended_words(entry)}.", *filter(None, facts), *said])


def ended_words(entry: RunEntry) -> str:
    """'done', or 'cancelled, 5 of 12 calls'."""
    asked = entry.job.get("settings", {}).get("nfe")
    if entry.nfe is None or entry.nfe == asked:
        return entry.status
    return f"{entry.status}, {calls_text(entry.nfe, asked)} calls"
