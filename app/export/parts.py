"""The parts of the export dialog; they show and ask, and decide nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QColor, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QCheckBox,
    QGridLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QRadioButton,
    QWidget,
)

from app.export.formats import FORMATS, is_series
from app.export.plan import CURRENT, REPORT_OF_VISIBLE, VISIBLE
from app.theme import is_dark
from app.widgets import in_row, plain_tip

RED: Final = {False: "#b00020", True: "#ff8a80"}  # readable on light, on dark
MOST_LISTED: Final = 200
ONE, ALL = "one", "all"
WHAT_OPTIONS: Final = (
    (CURRENT, "Current run", "Write the run that is selected in the table of runs."),
    (VISIBLE, "All visible runs", "Write every run that is ticked in the table of runs."),
    (REPORT_OF_VISIBLE, "Report", "Write one HTML page that compares all visible runs."),
)
SLICE_OPTIONS: Final = (
    (ALL, "All slices of the run", "Write every slice that was reconstructed."),
    (ONE, "This slice", "Write only the slice that is shown."),
)


class Choice(QWidget):
    """A row of radio buttons: (key, label, tooltip)."""

    changed = Signal()

    def __init__(self, name: str, options: Sequence[tuple[str, str, str]]) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.buttons: dict[str, QRadioButton] = {}
        self._tips = {key: tip for key, _, tip in options}
        self._group = QButtonGroup(self)
        row = in_row(spacing=16, margins=0, parent=self)
        for key, label, tip in options:
            button = QRadioButton(label)
            button.setAccessibleName(f"{name}: {label}")
            button.setToolTip(tip)
            self.buttons[key] = button
            self._group.addButton(button)
            row.addWidget(button)
        row.addStretch()
        next(iter(self.buttons.values())).setChecked(True)
        # toggled, not clicked: the arrow keys choose without a click
        self._group.buttonToggled.connect(self._on_toggled)

    @property
    def key(self) -> str:
        return next(key for key, button in self.buttons.items() if button.isChecked())

    def choose(self, key: str) -> None:
        """From the program: tells nobody."""
        with QSignalBlocker(self._group):
            self.buttons[key].setChecked(True)

    @Slot(QAbstractButton, bool)
    def _on_toggled(self, button: QAbstractButton, on: bool) -> None:
        if on:
            self.changed.emit()

    def set_label(self, key: str, label: str) -> None:
        self.buttons[key].setText(label.replace("&", "&&"))
        self.buttons[key].setAccessibleName(f"{self.accessibleName()}: {label}")

    def set_reason(self, key: str, reason: str) -> None:
        """Why one of them cannot be chosen; empty when it can."""
        self.buttons[key].setEnabled(not reason)
        self.buttons[key].setToolTip(plain_tip(reason or self._tips[key]))


class FormatBoxes(QWidget):
    """A check box for every format, with its sentence beside it."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Formats")
        self.boxes: dict[str, QCheckBox] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        for row, format in enumerate(FORMATS):
            box = QCheckBox(format.title)
            box.setAccessibleName(f"{format.title}: {format.words}")
            box.setToolTip(f"{format.words} Ends in {format.suffix}.")
            words = QLabel(format.words)
            words.setForegroundRole(QPalette.ColorRole.PlaceholderText)
            words.setBuddy(box)
            grid.addWidget(box, row, 0)
            grid.addWidget(words, row, 1)
            box.clicked.connect(lambda: self.changed.emit())
            self.boxes[format.key] = box

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, box in self.boxes.items() if box.isChecked())

    def tick(self, keys: Collection[str]) -> None:
        for key, box in self.boxes.items():
            box.setChecked(key in keys)

    def set_reason(self, reason: str) -> None:
        self.setEnabled(not reason)
        self.setToolTip(plain_tip(reason))


class FileList(QListWidget):
    """The files that would be written; those that are there already in red."""

    def __init__(self) -> None:
        self._shown: tuple[Sequence[Path], Collection[Path]] = ((), ())
        super().__init__()
        self.setAccessibleName("Files that will be written")
        self.setToolTip("These files will be written; those in red exist already.")
        self.setSelectionMode(QListWidget.SelectionMode.NoSelection)
        self.setUniformItemSizes(True)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_files(self, files: Sequence[Path], existing: Collection[Path]) -> None:
        """Existing ones come first: they are what a person must not overlook."""
        self._shown = (files, existing)
        self.clear()
        red = QBrush(QColor(RED[is_dark(self.palette())]))
        ordered = sorted(files, key=lambda path: path not in existing)
        for path in ordered[:MOST_LISTED]:
            name = f"{path.name}/" if is_series(path) else path.name
            item = QListWidgetItem(f"{name}   exists already" if path in existing else name)
            item.setToolTip(plain_tip(str(path)))
            if path in existing:
                item.setForeground(red)
            self.addItem(item)
        if len(ordered) > MOST_LISTED:
            self.addItem(f"and {len(ordered) - MOST_LISTED} more")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._shown[0]:
            self.show_files(*self._shown)  # another red for another ground
