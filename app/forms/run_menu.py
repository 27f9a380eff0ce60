"""Beside Run: on this slice, on a range, or on the whole stack, and how long that will take."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractButton,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QMenu,
    QSpinBox,
    QToolButton,
    QWidget,
)

from app.widgets import in_column

Estimate = Callable[[int], str]  # of so many slices, in words; empty when nothing is known

STREAMED = "Slice by slice, from the one that is shown outwards; finished slices stay."
ONE_SLICE = "These data have one slice."


class RunMenu(QObject):
    this_wanted = Signal()
    range_wanted = Signal()
    all_wanted = Signal()

    def __init__(self, run: QAbstractButton, button: QToolButton, estimate: Estimate) -> None:
        super().__init__(button)
        self.run, self.button, self.estimate, self.count = run, button, estimate, 0
        self.menu = QMenu(button)
        self.menu.setToolTipsVisible(True)
        self.this = self.menu.addAction("This slice")
        self.range = self.menu.addAction("A range of slices…")
        self.all = self.menu.addAction("Whole stack")
        for action, wanted in (
            (self.this, self.this_wanted),
            (self.range, self.range_wanted),
            (self.all, self.all_wanted),
        ):
            action.triggered.connect(lambda _=False, signal=wanted: signal.emit())
        button.setText("▾")
        button.setStyleSheet("QToolButton::menu-indicator { image: none; }")
        button.setMenu(self.menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.aboutToShow.connect(self.refresh)
        self.refresh()

    def set_count(self, count: int) -> None:
        self.count = count
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        can = self.run.isEnabled()
        self.this.setEnabled(can)
        self.this.setToolTip(self.run.toolTip())
        self.all.setText(in_words("Whole stack", self.count, self.estimate(self.count)))
        for action in (self.range, self.all):
            action.setEnabled(can and self.count > 1)
            why = self.run.toolTip() if not can else ONE_SLICE
            action.setToolTip(STREAMED if action.isEnabled() else why)


class RangeDialog(QDialog):
    """`chosen` carries the first number and that after the last, counted from 0."""

    chosen = Signal(int, int)

    def __init__(self, count: int, here: int, estimate: Estimate, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Run on a range of slices")
        self.estimate = estimate
        self.first, self.last = QSpinBox(), QSpinBox()
        form = QFormLayout()
        for spin, name, value in (
            (self.first, "First slice", max(1, here - 4)),
            (self.last, "Last slice", min(count, here + 6)),
        ):
            spin.setRange(1, count)
            spin.setValue(value)
            spin.setAccessibleName(name)
            spin.setToolTip(f"{name}, counted from 1.")
            spin.valueChanged.connect(self._say)
            form.addRow(name, spin)
        self.words = QLabel()
        self.words.setAccessibleName("How many slices, how long")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.run = buttons.addButton("Run", QDialogButtonBox.ButtonRole.AcceptRole)
        self.run.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        in_column(form, self.words, buttons, parent=self)
        self._say()

    def ends(self) -> tuple[int, int]:
        low, high = sorted((self.first.value(), self.last.value()))
        return low - 1, high

    def accept(self) -> None:
        super().accept()
        self.chosen.emit(*self.ends())

    @Slot()
    def _say(self) -> None:
        first, end = self.ends()
        self.words.setText(in_words("Slice by slice", end - first, self.estimate(end - first)))


def in_words(what: str, count: int, time: str) -> str:
    slices = "1 slice" if count == 1 else f"{count} slices"
    return ", ".join(part for part in (f"{what}: {slices}", time) if part) if count else what
