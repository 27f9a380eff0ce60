"""What was found in the data, and what was looked at before a run: the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.forms.labels import on_screen
from app.forms.rows import SentenceLabel
from app.theme import VERDICTS, is_dark
from app.widgets import empty_layout, in_column, plain_tip

if TYPE_CHECKING:
    from engine.data.dataset import Check, Fact


class FactsList(QWidget):
    """Names on the left, values on the right; the origin is the tooltip of both."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("What was found")
        self.grid = QGridLayout()
        column = in_column(self.grid, margins=(8, 0, 0, 0), parent=self)
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
        self.column = in_column(spacing=4, margins=0, parent=self)
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


# the worst first: a mark of its own shape, and a word
MARKS: Final = {"blocking": "✖", "doubtful": "⚠", "corrected": "↻", "good": "✓"}
WORDS: Final = {"blocking": "blocks a run", "doubtful": "doubtful", "corrected": "corrected"}


class ChecksList(QWidget):
    """What is good has a short line; everything else says its sentence, and the tip what to do."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Checks before a run")
        self.grid = QGridLayout()
        self.grid.setHorizontalSpacing(8)
        self.grid.setVerticalSpacing(4)
        self.grid.setColumnStretch(1, 1)
        in_column(self.grid, None, margins=(8, 0, 0, 0), parent=self)
        self._checks: tuple[Check, ...] = ()
        self._marks: list[tuple[QLabel, str]] = []

    @property
    def has_news(self) -> bool:
        """Whether a check says more than that all is well."""
        return any(check.verdict != "good" for check in self._checks)

    @property
    def sentences(self) -> set[str]:
        """What the list says in full."""
        return {check.sentence for check in self._checks if check.verdict != "good"}

    @property
    def summary(self) -> str:
        """Such as '1 doubtful, 2 corrected'; what is good counts only when everything is."""
        verdicts = [check.verdict for check in self._checks]
        news = [name for name in MARKS if name in verdicts and name != "good"]
        counts = ((verdicts.count(name), name) for name in news or verdicts[:1])
        return ", ".join(f"{count} {name}" for count, name in counts)

    def show_checks(self, checks: Sequence[Check], facts: Iterable[Fact] = ()) -> None:
        """``facts`` are shown below, as what they are."""
        empty_layout(self.grid)
        order = list(MARKS)
        self._checks = tuple(sorted(checks, key=lambda check: order.index(check.verdict)))
        self._marks = []
        for check in self._checks:
            sentence = on_screen(check.sentence)
            name = check.name[:1].upper() + check.name[1:]
            words = name
            if check.verdict != "good":
                words = f"{name}, {WORDS[check.verdict]}: {sentence}"
            tip = on_screen(check.fix) if check.verdict != "good" else sentence
            self._add(MARKS[check.verdict], words, tip or sentence, check.verdict)
        for fact in facts:
            name = fact.name[:1].upper() + fact.name[1:]
            self._add("•", f"{name}: {fact.value}", f"From: {fact.origin}.", "")
        self._colour()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()

    def _add(self, mark: str, words: str, tip: str, verdict: str) -> None:
        shape, line = QLabel(mark), SentenceLabel(self)
        shape.setAccessibleName(verdict or "known")
        line.say(words)
        line.setAccessibleName(f"{verdict}: {words}" if verdict else words)
        row = len(self._marks)
        for column, label in enumerate((shape, line)):
            label.setToolTip(plain_tip(tip))
            self.grid.addWidget(label, row, column, Qt.AlignmentFlag.AlignTop)
        self._marks.append((shape, verdict))

    def _colour(self) -> None:
        dark = is_dark(self.palette())
        for label, verdict in self._marks:
            if verdict:
                label.setStyleSheet(f"color: {VERDICTS[verdict][dark]}; font-weight: bold")
