"""Asks what a file holds when it does not say so itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QDialogButtonBox,
    QRadioButton,
    QWidget,
)

from app.data.opened import Choice, Opened
from app.forms.rows import SentenceLabel
from app.widgets import in_column, plain_tip, scrolled

QUESTIONS = {
    "dataset": "It holds several arrays. Which one is to be opened?",
    "axes": "In which order are its axes?",
    "allow_links": "Parts of it lie in other files. May links be followed, and where to?",
}
OTHERWISE = "It does not say what its numbers are. What are they?"


class ChoiceDialog(QDialog):
    """Open with `open()`; the options of the answer come as `given`."""

    given = Signal(dict)

    def __init__(
        self,
        name: str,
        missing: Sequence[str],
        choices: Sequence[Choice],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"What is {name}?")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.choices = tuple(choices)
        self.group = QButtonGroup(self)
        body = QWidget()
        lines = in_column(spacing=8, margins=0, parent=body)
        for number, choice in enumerate(self.choices):
            button = QRadioButton(choice.words.replace("&", "&&"))
            button.setAccessibleName(choice.words)
            button.setToolTip(plain_tip(f"Read the file as this: {choice.words}."))
            self.group.addButton(button, number)
            lines.addWidget(button)
        lines.addStretch(1)
        question = SentenceLabel(self)
        question.say(QUESTIONS.get(missing[0], OTHERWISE))
        self.buttons = QDialogButtonBox()
        self.ok = self.buttons.addButton("Open", QDialogButtonBox.ButtonRole.AcceptRole)
        self.cancel = self.buttons.addButton("Cancel", QDialogButtonBox.ButtonRole.RejectRole)
        self.cancel.setToolTip("Leave the file unopened.")
        in_column(question, (scrolled(body, "Answers"), 1), self.buttons, spacing=16, parent=self)
        self.resize(360, min(480, 136 + 32 * len(self.choices)))
        self.group.idToggled.connect(self._refresh)
        self.buttons.accepted.connect(self._on_accepted)
        self.buttons.rejected.connect(self.reject)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        chosen = self.group.checkedId() >= 0
        self.ok.setEnabled(chosen)
        self.ok.setToolTip("Read the file as chosen." if chosen else "Choose an answer first.")

    @Slot()
    def _on_accepted(self) -> None:
        if self.group.checkedId() >= 0:
            self.given.emit(self.choices[self.group.checkedId()].options)
            self.accept()


ARRAYS = (".npy", ".npz", ".mat")
IMAGES = (
    Choice("CT image in HU", {"modality": "ct", "unit": "hu"}),
    Choice("CT image of attenuation, in 1/mm", {"modality": "ct", "unit": "mu"}),
    Choice("CT image of attenuation, in 1/cm", {"modality": "ct", "unit": "mu-cm"}),
    Choice("CT image, normalised (HU = 1000 x)", {"modality": "ct", "unit": "normalised"}),
    Choice("MR image", {"modality": "mr"}),
)
SINOGRAMS = (
    Choice("Sinogram of line integrals", {"kind": "sinogram", "unit": "line-integral"}),
    Choice("Sinogram of transmission, 0 to 1", {"kind": "sinogram", "unit": "transmission"}),
    Choice("Sinogram of photon counts", {"kind": "sinogram", "unit": "counts"}),
)
COMPLEX = (
    Choice("k-space", {"kind": "kspace"}),
    Choice("Complex MR image", {"kind": "image", "modality": "mr"}),
)


def choices_for(
    missing: tuple[str, ...], values: tuple[str, ...], is_geometry: bool
) -> tuple[Choice, ...]:
    """Answers to what is missing; none for a geometry, which takes numbers."""
    if is_geometry:
        return ()
    if missing == ("kind",):
        return COMPLEX
    if values:
        return tuple(Choice(_words(missing[0], value), {missing[0]: value}) for value in values)
    return (*IMAGES, *SINOGRAMS) if "kind" in missing else IMAGES


def may_be_kspace(opened: Opened) -> bool:
    """Whether a complex array was taken as an image only because nothing said otherwise."""
    path = Path(opened.text)
    if opened.kind != "image" or opened.modality != "MR" or path.suffix.lower() not in ARRAYS:
        return False
    said = {"kind", "modality", "axes"} & set(opened.options)
    if said or path.with_suffix(".json").exists():
        return False
    return bool(np.iscomplexobj(opened.dataset.read(opened.middle)))  # type: ignore[attr-defined]


def _words(option: str, value: str) -> str:
    if option == "allow_links":
        return f"Only to files in {value}"
    return value.replace(",", ", ") if option == "axes" else value
