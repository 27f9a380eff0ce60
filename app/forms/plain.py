"""The same choices in plain words: who reads here, and how the image is to be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QLabel, QRadioButton, QToolButton, QWidget

from app.forms.rows import SentenceLabel
from app.forms.solver_model import SolverModel
from app.widgets import in_column, in_row

Times = Callable[[dict[str, Any]], str]  # how long a job takes, in words

CLINICIAN_TIP: Final = "Data, how much is measured, how the image is made, Run; in plain words."
EXPERT_TIP: Final = "Every setting of scan, method, prior and device."
OWN: Final = "As set in Expert"
OWN_WORDS: Final = "Settings of your own; they stay until you choose another line."


class ModeSwitch(QWidget):
    """Clinician or Expert; nothing but what is shown depends on it."""

    expert_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Clinician or expert")
        self.clinician, self.expert = QToolButton(), QToolButton()
        group = QButtonGroup(self)
        for button, words, tip in (
            (self.clinician, "Clinician", CLINICIAN_TIP),
            (self.expert, "Expert", EXPERT_TIP),
        ):
            button.setText(words)
            button.setToolTip(tip)
            button.setAccessibleName(words)
            button.setCheckable(True)
            button.setProperty("switch", True)
            group.addButton(button)
        self.expert.setChecked(True)
        in_row(self.clinician, self.expert, None, spacing=4, margins=0, parent=self)
        self.expert.toggled.connect(self.expert_changed)

    def set_expert(self, on: bool) -> None:
        (self.expert if on else self.clinician).setChecked(True)


@dataclass(frozen=True)
class Plain:
    """A method with its settings; all others at their default."""

    name: str
    words: str
    solver: dict[str, str]  # by modality
    settings: dict[str, Any] = field(default_factory=dict)


BOTH = {"CT": "dc-pnpdp", "MR": "dc-pnpdp"}
CHOICES: Final = (
    Plain("Recommended", "A learnt prior that is held to the measurement, 50 steps.", BOTH),
    Plain(
        "Quick look", "The same in 15 steps: coarser, for a first impression.", BOTH, {"nfe": 15}
    ),
    Plain("Careful", "The same in 100 steps: the finest detail.", BOTH, {"nfe": 100}),
    Plain(
        "Without a learnt prior",
        "Total variation: smooths, but invents no anatomy.",
        {"CT": "tv", "MR": "tv"},
    ),
    Plain(
        "Direct",
        "As a scanner does: filtered back-projection, or zero-filled.",
        {"CT": "fbp", "MR": "zero-filled"},
    ),
)


class PlainChoice(QWidget):
    """One line per way to make the image; it writes into the expert's fields and reads them.

    Nothing is lost: what an expert has set is a line of its own, and a choice can be undone.
    """

    def __init__(self, model: SolverModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("How the image is made")
        self.model = model
        self.time_of: Times = lambda job: ""
        self.own = QRadioButton(OWN)
        self.own.setToolTip(OWN_WORDS)
        self.radios = {choice.name: QRadioButton(choice.name) for choice in CHOICES}
        self.times = {choice.name: QLabel() for choice in CHOICES}
        self.own_words = SentenceLabel()
        group, column = QButtonGroup(self), in_column(spacing=2, margins=0, parent=self)
        for choice in CHOICES:
            radio, time = self.radios[choice.name], self.times[choice.name]
            words = QLabel(choice.words)
            words.setWordWrap(True)
            words.setContentsMargins(24, 0, 0, 4)
            radio.setAccessibleName(f"{choice.name}: {choice.words}")
            radio.setToolTip(choice.words)
            radio.clicked.connect(lambda _=False, chosen=choice: self.choose(chosen))
            group.addButton(radio)
            time.setToolTip("For one slice, at the pace that this machine has shown.")
            column.addLayout(in_row(radio, None, time))
            column.addWidget(words)
        group.addButton(self.own)
        column.addWidget(self.own)
        column.addWidget(self.own_words)
        model.history.changed.connect(self.refresh)

    def choose(self, choice: Plain) -> None:
        """Put it into the fields, as one step."""
        model = self.model
        values = {name: model.history.default(name) for name in model.setting_names()}
        method = {"method": choice.solver[model.modality], "prior": "auto"}
        values |= choice.settings | method
        model.history.set_many(values)

    def chosen(self) -> Plain | None:
        """Which line the fields amount to now; None when they are somebody's own."""
        now = self.model.value()
        for choice in CHOICES:
            named = (choice.solver[self.model.modality], "auto")
            if named == (now["solver"], now["prior"]):
                given = {
                    name: value
                    for name, value in choice.settings.items()
                    if value != self.model.history.default(name)
                }
                if given == now["settings"]:
                    return choice
        return None

    @Slot()
    def refresh(self) -> None:
        if self.model.choices is None:
            return
        now = self.chosen()
        known = {method.name for method in self.model.methods()}
        for choice in CHOICES:
            solver = choice.solver[self.model.modality]
            self.radios[choice.name].setEnabled(solver in known)
            self.radios[choice.name].setChecked(choice is now)
            job = {**self.model.value(solver), "settings": choice.settings}
            self.times[choice.name].setText(self.time_of(job))
        self.own.setVisible(now is None)
        self.own.setChecked(now is None)
        self.own_words.say(OWN_WORDS if now is None else "")
