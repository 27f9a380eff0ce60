"""Where two runs differ: their settings, and how they ended."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.forms.labels import label_of
from app.runs.colours import SWATCH_PX, swatch
from app.runs.store import RunEntry, settings_diff
from app.runs.table_model import ended_words
from app.widgets import in_column, plain_look


class SettingsDiffView(QWidget):
    """A table of name, value in one run, value in the other."""

    def __init__(self, a: RunEntry, b: RunEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        rows = [*_endings(a, b), *settings_diff(a.job, b.job)]
        self.summary = QLabel(_summary(a, b, len(rows)), self)
        self.summary.setWordWrap(True)
        self.table = QTableWidget(len(rows), 3, self)
        self.table.setAccessibleName("Settings that differ")
        self.table.setToolTip("Each line is a setting with its value in either run.")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setIconSize(SWATCH_PX)
        plain_look(self.table)
        self.table.setHorizontalHeaderLabels(["Setting", a.name, b.name])
        for column, entry in ((1, a), (2, b)):
            heading = QTableWidgetItem(QIcon(swatch(entry.colour, entry.dash, 2.0)), entry.name)
            self.table.setHorizontalHeaderItem(column, heading)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        for row, (name, *values) in enumerate(rows):
            self.table.setItem(row, 0, QTableWidgetItem(setting_name(name)))
            for column, value in enumerate(values, start=1):
                self.table.setItem(row, column, QTableWidgetItem(value_text(value)))
        in_column(self.summary, self.table, spacing=8, margins=0, parent=self)


class SettingsDiffDialog(QDialog):
    """Not modal: the runs can be looked at while it is open."""

    def __init__(self, a: RunEntry, b: RunEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"{a.name} and {b.name}")
        self.setModal(False)
        self.view = SettingsDiffView(a, b, self)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        in_column(self.view, buttons, margins=16, parent=self)
        self.resize(560, 360)


def _endings(a: RunEntry, b: RunEntry) -> list[tuple[str, Any, Any]]:
    """A run that was stopped is not the same as one that went to its end."""
    one, other = ended_words(a), ended_words(b)
    return [("how it ended", one, other)] if one != other else []


def _summary(a: RunEntry, b: RunEntry, count: int) -> str:
    if not count:
        return f"{a.name} and {b.name} were made with the same settings, to their end."
    what = "one point" if count == 1 else f"{count} points"
    text = f"{a.name} and {b.name} differ in {what}."
    psnr = a.metric("psnr"), b.metric("psnr")
    if psnr[0] is not None and psnr[1] is not None:
        text += f" PSNR {psnr[0]:.2f} dB and {psnr[1]:.2f} dB."
    return text


def setting_name(dotted: str) -> str:
    """'settings.cg_iterations' as the form calls it; other groups are named, too."""
    group, _, name = dotted.rpartition(".")
    words = name.capitalize() if " " in name else label_of(name)
    return words if group in ("", "settings") else f"{group.capitalize()}: {words}"


def value_text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
