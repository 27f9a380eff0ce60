"""Plays the slices one after the other, each only when the one before it was seen."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QSpinBox, QToolButton, QWidget

from app.icons import SIDE, icon
from app.theme import tabular
from app.widgets import in_row

SPEEDS: Final = (1, 60)  # slices per second
USUAL: Final = 10


class CineBar(QWidget):
    wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count, self.number, self.step = 1, 0, 1
        self._awaited: int | None = None
        self.button, self.speed = QToolButton(), QSpinBox()
        self.button.setIcon(icon("cine"))
        self.button.setIconSize(QSize(SIDE, SIDE))
        self.button.setCheckable(True)
        self.button.setProperty("switch", True)
        self.button.setAccessibleName("Play the slices")
        self.button.setToolTip("Play the slices in the order of InstanceNumber, or stop.")
        self.speed.setRange(*SPEEDS)
        self.speed.setValue(USUAL)
        self.speed.setSuffix(" /s")
        self.speed.setAccessibleName("Slices per second")
        self.speed.setToolTip("How many slices are played in a second, if they are read so fast.")
        self.speed.setKeyboardTracking(False)
        self.speed.setFont(tabular(self.speed.font()))
        in_row(self.button, self.speed, spacing=4, margins=0, parent=self)
        self.timer = QTimer(self)
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self._on_time)
        self.button.toggled.connect(self.play)
        self.speed.valueChanged.connect(self._set_speed)
        self._set_speed(USUAL)

    def set_series(self, count: int, step: int = 1) -> None:
        """Other data: ``step`` leads to the next InstanceNumber."""
        self.count, self.step, self._awaited = count, step, None
        self.stop()

    def set_number(self, number: int) -> None:
        self.number = number

    @Slot(bool)
    def play(self, on: bool) -> None:
        self._awaited = None
        if on and self.count > 1 and self.isVisible():
            self.timer.start()
        else:
            self.timer.stop()

    def stop(self) -> None:
        self.button.setChecked(False)

    @Slot(int)
    def on_seen(self, number: int) -> None:
        if number == self._awaited:
            self._awaited = None

    def _set_speed(self, slices_per_s: int) -> None:
        self.timer.setInterval(round(1000 / slices_per_s))

    def _on_time(self) -> None:
        if self._awaited is None and self.isVisible():
            self._awaited = (self.number + self.step) % self.count
            self.wanted.emit(self._awaited)
