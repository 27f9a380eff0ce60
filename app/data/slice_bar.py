"""Which slice is shown: a slider for the hand and a number for those who know it."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QSpinBox, QVBoxLayout, QWidget

from app.theme import tabular


class SliceBar(QWidget):
    """Counts from 1 on the screen and from 0 in its signal; hidden when there is one slice."""

    wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count = 1
        self.words = QLabel()
        self.words.setFont(tabular(self.words.font()))
        self.spin = QSpinBox()
        self.spin.setAccessibleName("Slice number")
        self.spin.setToolTip("Type the number of the slice to show.")
        self.spin.setKeyboardTracking(False)
        self.spin.setFont(tabular(self.spin.font()))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Slice")
        self.slider.setToolTip("Drag to go through the slices; arrow keys go one by one.")
        first = QHBoxLayout()
        first.setContentsMargins(0, 0, 0, 0)
        first.addWidget(self.words, 1)
        first.addWidget(self.spin)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(first)
        column.addWidget(self.slider)
        self.slider.valueChanged.connect(self._on_value)
        self.spin.valueChanged.connect(self._on_value)
        self.set_count(1)

    @property
    def number(self) -> int:
        return self.slider.value() - 1

    def set_count(self, count: int, number: int = 0) -> None:
        self.count = count
        for control in (self.slider, self.spin):
            with QSignalBlocker(control):
                control.setRange(1, count)
        self.slider.setPageStep(max(1, count // 10))
        self.set_number(number)
        self.setVisible(count > 1)

    @Slot(int)
    def set_number(self, number: int) -> None:
        """Follow what is shown elsewhere; `wanted` stays silent."""
        for control in (self.slider, self.spin):
            with QSignalBlocker(control):
                control.setValue(number + 1)
        self.words.setText(f"Slice {self.slider.value()} of {self.count}")

    @Slot(int)
    def _on_value(self, value: int) -> None:
        self.set_number(value - 1)
        self.wanted.emit(value - 1)
