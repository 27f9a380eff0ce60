"""Which slices the next run is for."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSpinBox, QWidget

from app.forms.fields import CalmCombo
from app.widgets import in_column, in_row

THIS, RANGE, ALL = "this", "range", "all"
WORDS = {THIS: "this slice", RANGE: "a range", ALL: "all slices"}


class SliceChoice(QWidget):
    """This slice, a range or all, the first of them at first; hidden when there is only one."""

    edited = Signal()

    def __init__(
        self, offered: Sequence[str] = (THIS, RANGE, ALL), parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.count, self.slice, self.offered = 1, 0, True
        self.box = CalmCombo()
        self.box.setAccessibleName("Slices to reconstruct")
        self.box.setToolTip(
            "Which slices the next run takes together; the menu beside Run goes one by one."
        )
        for value in offered:
            self.box.addItem(WORDS[value], value)
        self.first, self.last = QSpinBox(), QSpinBox()
        for spin, name in ((self.first, "First slice"), (self.last, "Last slice")):
            spin.setAccessibleName(name)
            spin.setToolTip(f"{name} of the range, counted from 1.")
        self.ends = QWidget()
        ends = QHBoxLayout(self.ends)
        ends.setContentsMargins(0, 0, 0, 0)
        for widget in (QLabel("from"), self.first, QLabel("to"), self.last):
            ends.addWidget(widget)
        ends.addStretch(1)
        line = in_row(QLabel("Reconstruct"), (self.box, 1))
        in_column(line, self.ends, spacing=4, margins=0, parent=self)
        self.box.currentIndexChanged.connect(self._on_edited)
        self.first.valueChanged.connect(self._on_edited)
        self.last.valueChanged.connect(self._on_edited)
        self.set_count(1)

    def set_count(self, count: int) -> None:
        self.count = count
        for spin in (self.first, self.last):
            spin.setRange(1, count)
        self.first.setValue(1)
        self.last.setValue(count)
        self.box.setCurrentIndex(0)
        self.setVisible(count > 1 and self.offered)
        self.ends.setVisible(False)

    def set_offered(self, on: bool) -> None:
        """Where it is not, the next run is on the slice that is shown."""
        self.offered = on
        self.setVisible(on and self.count > 1)

    @Slot(int)
    def set_slice(self, number: int) -> None:
        self.slice = number

    def amount(self) -> int:
        """How many slices are chosen."""
        chosen = self.box.currentData() if self.offered else THIS
        if chosen == RANGE:
            return abs(self.last.value() - self.first.value()) + 1
        return self.count if chosen == ALL else 1

    def value(self) -> str:
        """As `Job.slices` takes it."""
        chosen = self.box.currentData() if self.offered else THIS
        if chosen == ALL:
            return f"0:{self.count}"
        if chosen == RANGE:
            low, high = sorted((self.first.value(), self.last.value()))
            return f"{low - 1}:{high}"
        return str(self.slice)

    @Slot()
    def _on_edited(self) -> None:
        self.ends.setVisible(self.box.currentData() == RANGE)
        self.edited.emit()
