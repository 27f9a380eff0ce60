"""What is asked of the dose explorer: which setting, through which values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFormLayout, QLabel, QLineEdit, QWidget

from app.forms.fields import CalmCombo
from app.forms.rows import SentenceLabel
from app.tools.dose.model import SWEEPS, CurrentScan, DoseRequest, Sweep, jobs_of, values_of
from app.widgets import in_column
from engine.spec.errors import RequestError

WIDTH_PX: Final = 280
Times = Callable[[list[dict[str, Any]], str], str]  # how long jobs will take, in words


class DosePanel(QWidget):
    """Holds a request; starts nothing.

    Parameters
    ----------
    now : what the main window would run with
    times : how long that would take on this machine
    """

    changed = Signal()

    def __init__(
        self, now: Callable[[], CurrentScan], times: Times, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._now_of, self.times, self._now = now, times, CurrentScan(fault="Open data first.")
        self.box = CalmCombo()
        self.box.setAccessibleName("What is swept")
        self.box.setToolTip("The setting that goes through the values; all others stay.")
        self.values = QLineEdit()
        self.values.setAccessibleName("Values")
        self.values.setToolTip("Numbers with commas between them; one image for each.")
        self.words, self.time = QLabel(), QLabel()
        self.fault = SentenceLabel()
        self.fault.setObjectName("fault")
        for label, name in ((self.words, "Method and scan"), (self.time, "How long it takes")):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAccessibleName(name)
        form = QFormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
        form.addRow("Sweep", self.box)
        form.addRow("Values", self.values)
        in_column(self.words, form, self.fault, self.time, None, spacing=8, margins=0, parent=self)
        self.setFixedWidth(WIDTH_PX)
        self.box.currentIndexChanged.connect(self._on_sweep)
        self.values.textChanged.connect(self._on_values)
        self.refresh()

    @property
    def sweep(self) -> Sweep | None:
        found: Sweep | None = self.box.currentData()
        return found

    def value(self) -> DoseRequest:
        now, sweep = self._now, self.sweep
        if now.fault or sweep is None:
            return DoseRequest("", fault=now.fault or "Nothing of this can be swept.")
        try:
            values = values_of(self.values.text(), sweep)
        except RequestError as error:
            return DoseRequest("", fault=str(error))
        jobs = tuple(jobs_of(now.job, sweep, values))
        return DoseRequest("", sweep=sweep, values=values, jobs=jobs)

    @Slot()
    def refresh(self) -> None:
        """Look again what the main window would run with."""
        self._now = now = self._now_of()
        offered = [
            sweep
            for sweep in SWEEPS[now.modality]
            if (sweep.measured or not now.measured) and (sweep.name != "nfe" or now.counts_calls)
        ]
        if [self.box.itemData(i) for i in range(self.box.count())] != offered:
            self.box.clear()
            for sweep in offered:
                self.box.addItem(sweep.label, sweep)
        self.words.setText(now.words or now.fault)
        self._on_values()

    @Slot()
    def _on_sweep(self) -> None:
        if self.sweep is not None:
            self.values.setText(", ".join(f"{value:g}" for value in self.sweep.values))

    @Slot()
    def _on_values(self) -> None:
        asked = self.value()
        typed = not self._now.fault
        self.fault.say(asked.fault if typed else "")
        count = len(asked.jobs)
        time = self.times(list(asked.jobs), self._now.modality) if count else ""
        self.time.setText(f"{count} images, {time}" if count else "")
        self.changed.emit()
