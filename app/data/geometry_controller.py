"""Asks what a file does not say: what it holds, and how a sinogram was measured."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QDialog, QWidget

from app.data.choice_dialog import ChoiceDialog
from app.data.opened import Opened, Question
from app.data.presenter import DataPresenter
from app.forms.geometry_dialog import GeometryDialog, Offer
from app.tasks import Newest, Tasks
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

if TYPE_CHECKING:
    from engine.data.sinogram.dataset import SinogramDataset

MAKING = "Making the preview …"
CHECKING = "Looking at what the data say …"


class GeometryController(QObject):
    """Opens the dialog when a file needs it, or when the person wants to check the geometry.

    The geometry's dialog has a live preview and says what the data say of each reading.
    """

    def __init__(
        self, presenter: DataPresenter, tasks: Tasks, window: QWidget | None = None
    ) -> None:
        super().__init__(window or presenter)
        self.presenter, self.window = presenter, window
        self._shown: QDialog | None = None  # whichever dialog is open
        self.dialog: GeometryDialog | None = None
        self._text = ""
        self._previews, self._checks = Newest(tasks), Newest(tasks)
        presenter.geometry_needed.connect(self.ask)

    @Slot(object)
    def ask(self, question: Question) -> None:
        """Open the dialog; the file is opened with what is given there."""
        if not question.choices:
            self._show(question.text, question.screen_name, question.missing, question.options)
            return
        dialog = ChoiceDialog(question.screen_name, question.missing, question.choices, self.window)
        text, known = question.text, question.options
        dialog.given.connect(lambda options: self.presenter.open(text, {**known, **options}))
        self._replace(dialog)

    @Slot(object)
    def check_now(self, opened: Opened | None) -> None:
        """Show what is known of a measured scan, and what the data say of a sinogram's geometry."""
        if opened is None or opened.kind == "image":
            self.presenter.failed.emit(
                "Only a sinogram or k-space was measured: open one first.", ""
            )
            return
        self._show(opened.text, opened.screen_name, (), opened.options, opened.kind)

    def _show(
        self,
        text: str,
        name: str,
        missing: tuple[str, ...],
        options: dict[str, Any],
        kind: str = "sinogram",
    ) -> None:
        dialog = GeometryDialog(name, missing, options, self._on_preview_wanted, self.window, kind)
        dialog.given.connect(partial(self.presenter.open, text))
        self._replace(dialog)
        self._text, self.dialog = text, dialog

    def _replace(self, dialog: QDialog) -> None:
        """One question at a time: the newest."""
        if self._shown is not None:
            self._shown.close()
        self._shown = dialog
        dialog.finished.connect(self._on_finished)
        dialog.open()

    @Slot(int)
    def _on_finished(self, result: int) -> None:
        self.dialog = self._shown = None
        self._previews.drop()
        self._checks.drop()

    @Slot(dict)
    def _on_preview_wanted(self, options: dict[str, Any]) -> None:
        if self.dialog is None:
            return
        self.dialog.sentence.say(MAKING)
        self._checks.drop()  # they were about other options
        self._previews.ask(
            "Making a preview",
            partial(_preview, self._text, options),
            self._on_preview,
            self._on_preview_failed,
        )

    def _on_preview(self, answer: tuple[SinogramDataset | None, np.ndarray]) -> None:
        if self.dialog is None:
            return
        dataset, image = answer
        waiting = self._previews.waiting
        self.dialog.set_preview(image, MAKING if waiting else "")
        if waiting or dataset is None:
            return
        self.dialog.set_proposals([], CHECKING)
        self._checks.ask(
            "Checking the geometry", partial(_check, dataset), self._on_check, self._on_no_check
        )

    def _on_preview_failed(self, sentence: str, details: str) -> None:
        if self.dialog is not None:
            self.dialog.set_preview(None, f"⚠ {sentence}")
            self.dialog.set_proposals([])

    def _on_check(self, answer: tuple[list[Offer], str]) -> None:
        if self.dialog is not None:
            self.dialog.set_proposals(*answer)

    def _on_no_check(self, sentence: str, details: str) -> None:
        if self.dialog is not None:
            self.dialog.set_proposals([], sentence)


def _preview(text: str, options: dict[str, Any]) -> tuple[SinogramDataset | None, np.ndarray]:
    """The file read with these options, and its middle slice."""
    from engine.data.sinogram.dataset import SinogramDataset
    from engine.data.source import open_input

    dataset = open_input(text, InputOptions.from_dict(options))
    image = dataset.preview(dataset.count // 2)
    return dataset if isinstance(dataset, SinogramDataset) else None, image


def _check(dataset: SinogramDataset) -> tuple[list[Offer], str]:
    """The geometry check's proposals, best first, and what it cannot tell."""
    from engine.data.sinogram.geometry_check import cannot_tell

    offers = []
    for proposal in dataset.check_geometry():
        try:
            changes = dataset.changes_for(proposal)
        except RequestError:  # a reading that this file cannot be given
            continue
        offers.append(Offer(proposal.words, proposal.residual, changes))
    return offers, cannot_tell(dataset.geometry)
