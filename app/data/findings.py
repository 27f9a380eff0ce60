"""What was found in the data, where each of it came from, and what is doubtful."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.forms.labels import on_screen
from app.forms.rows import SentenceLabel
from app.widgets import empty_layout, plain_tip

if TYPE_CHECKING:
    from engine.data.dataset import Fact


class FactsList(QWidget):
    """Names on the left, values on the right; the origin is the tooltip of both."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("What was found")
        self.grid = QGridLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 0, 0, 0)
        column.addLayout(self.grid)
        column.addStretch(1)  # room that is left over does not spread the lines
        self.grid.setHorizontalSpacing(8)
        self.grid.setVerticalSpacing(4)
        self.grid.setColumnStretch(0, 2)
        self.grid.setColumnStretch(1, 3)

    def show_facts(self, facts: Iterable[Fact]) -> None:
        empty_layout(self.grid)
        for row, fact in enumerate(facts):
            name = QLabel(fact.name)
            name.setForegroundRole(QPalette.ColorRole.PlaceholderText)
            name.setWordWrap(True)
            name.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
            value = SentenceLabel(self)
            value.say(fact.value or "–")
            value.setAccessibleName(f"{fact.name}: {fact.value}")
            for label in (name, value):
                label.setTextFormat(Qt.TextFormat.PlainText)
                label.setToolTip(
                    plain_tip(f"From: {fact.origin}." if fact.origin else "Found by itself.")
                )
                self.grid.addWidget(label, row, label is value, Qt.AlignmentFlag.AlignTop)


class WarningsList(QWidget):
    """Every warning in full; no room at all when there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Warnings")
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(4)
        self.setVisible(False)

    def show_warnings(self, warnings: Iterable[str]) -> None:
        empty_layout(self.column)
        sentences = [on_screen(words) for words in warnings]
        for sentence in sentences:
            label = SentenceLabel(self)
            label.setToolTip("Doubtful in the data, or assumed because they do not say it.")
            label.say(f"⚠ {sentence}")
            self.column.addWidget(label)
        self.setVisible(bool(sentences))
