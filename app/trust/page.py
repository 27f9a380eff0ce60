"""One question about a run: its maps side by side, what they say, and how to read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.forms.rows import SentenceLabel
from app.images.display import LinkedView
from app.images.pane import ImagePane
from app.images.plane import PlanePane
from app.runs.store import RunEntry
from app.theme import RunStyle
from app.trust.model import CERTIFICATE, PULL, SPLIT, SPREAD, TITLES, Reading
from app.trust.overlay_pane import OverlayPane
from app.trust.parts_plot import PartsPlot

if TYPE_CHECKING:
    from engine.workflows.trust.slices import Answer

IMAGE, SIGNED, SIZE, OVER = "image", "signed", "size", "over"  # how a map is shown
PANES: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {  # map, how, caption
    SPLIT: (
        ("measured", IMAGE, "Measured part"),
        ("guessed", SIGNED, "Guessed part"),
        ("size", OVER, "|Guessed| over the image"),
    ),
    SPREAD: (("sd", SIZE, "SD over seeds"), ("sd", OVER, "SD over the image")),
    PULL: (("pull", SIZE, "|x − z|"), ("pull", OVER, "|x − z| over the image")),
    CERTIFICATE: (),
}


@dataclass(frozen=True)
class Subject:
    """The run and the slice of it that is looked at."""

    entry: RunEntry
    slice: int
    placement: Any = None

    @property
    def sample(self) -> int:
        return self.entry.slices.index(self.slice)


class Page(QWidget):
    """Shows an answer; asks for nothing."""

    def __init__(self, kind: str, link: LinkedView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind, self.link = kind, link
        self.answer: Answer | None = None
        self.panes: list[ImagePane] = []
        self.plot = PartsPlot()
        self.empty = QLabel()
        self.says, self.reading, self.limits = SentenceLabel(), SentenceLabel(), SentenceLabel()
        self._modality = ""
        self.setAccessibleName(TITLES[kind])
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        bold = self.says.font()
        bold.setBold(True)
        self.says.setFont(bold)
        for label, name in (
            (self.empty, "No answer yet"),
            (self.says, "What was found"),
            (self.reading, "How to read it"),
            (self.limits, "What it cannot tell"),
        ):
            label.setAccessibleName(name)
        for label in (self.says, self.reading, self.limits):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = QHBoxLayout()
        self._row.setSpacing(2)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        column.addWidget(self.empty, 1)
        column.addLayout(self._row, 1 if PANES[kind] else 0)
        column.addWidget(self.plot, 0 if PANES[kind] else 1)
        for label in (self.says, self.reading, self.limits):
            column.addWidget(label)
        self.show_nothing("")

    def set_reading(self, reading: Reading) -> None:
        self.reading.say(f"How to read it: {reading.how_to_read}")
        self.limits.say(f"What it cannot tell: {reading.cannot_tell}")

    def show_nothing(self, why: str) -> None:
        self.answer = None
        self.empty.setText(why)
        self.empty.show()
        self.says.say("")
        self.plot.show_certificate(None)
        for pane in self.panes:
            pane.clear()
            pane.hide()

    def show_answer(self, answer: Answer, subject: Subject) -> None:
        """Nothing is drawn again that is there already: a person may have changed its scale."""
        if answer is self.answer:
            return
        self.answer = answer
        self.empty.setVisible(not answer.maps and answer.certificate is None)
        self.empty.setText("")
        self.says.say(" ".join(answer.says))
        self.plot.show_certificate(answer.certificate)
        self._make_panes(subject.entry.modality)
        for pane, (name, _, caption) in zip(self.panes, PANES[self.kind], strict=True):
            if name in answer.maps:
                self._fill(pane, answer, name, subject)
                pane.set_caption(f"{caption}: {subject.entry.name}")
            pane.setVisible(name in answer.maps)

    def _fill(self, pane: ImagePane, answer: Answer, name: str, subject: Subject) -> None:
        entry, values = subject.entry, answer.maps[name]
        pixel = entry.pixel_mm or (1.0, 1.0)
        pane.set_run_style(RunStyle(entry.colour, tuple(entry.dash)))
        pane.set_run_lines(entry.label)
        pane.set_placement(subject.placement)
        if isinstance(pane, OverlayPane):
            assert entry.images is not None
            scale = (answer.full_scale, answer.unit)
            pane.show_map(entry.images[subject.sample], values, scale, pixel, entry.modality)
        elif isinstance(pane, PlanePane):
            pane.show_plane(values, pixel, entry.modality, answer.unit)
        else:
            pane.set_image(values, pixel, entry.modality)

    def _make_panes(self, modality: str) -> None:
        """Of MR the magnitude is shown, which has no sign: its panes are others."""
        if modality == self._modality:
            return
        self._modality = modality
        for pane in self.panes:
            self._row.removeWidget(pane)
            pane.hide()
            pane.detach()
            pane.deleteLater()
        self.panes = [self._pane(how, modality) for _, how, _ in PANES[self.kind]]
        for pane in self.panes:
            pane.maximise_requested.connect(partial(self._toggle_alone, pane))
            self._row.addWidget(pane, 1)

    def _pane(self, how: str, modality: str) -> ImagePane:
        if how == OVER:
            return OverlayPane(self.link, self)
        if how == IMAGE:
            return ImagePane(self.link, parent=self)
        return PlanePane(self.link, how == SIGNED and modality == "CT", "", self)

    def _toggle_alone(self, pane: ImagePane) -> None:
        """A double click shows one map alone, and all again."""
        alone = any(not other.isHidden() for other in self.panes if other is not pane)
        for other in self.panes:
            other.setVisible(other is pane or not alone)
