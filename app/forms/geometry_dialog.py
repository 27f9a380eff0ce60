"""Asking how a scan was measured, with a preview and the geometry check's proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.forms.form import SettingsForm
from app.forms.pictures import ArrayPicture
from app.forms.rows import SentenceLabel
from app.widgets import empty_layout, in_column, in_row
from engine.spec.input_options import InputOptions
from engine.spec.settings import excludes, only_with

PAUSE_MS = 300  # after the last letter, before a preview is asked for
FAN = ("scan_source_origin_mm", "scan_source_detector_mm")
SINOGRAM = (
    *("scan_start", "scan_angle_unit", "scan_direction", "scan_flip"),
    *("scan_offset_mm", "scan_find_centre"),
    *("pixel_mm", "size", "extended_fov", "slice_spacing_mm", "unit", "axes"),
    *("energy_kev", "mu_water"),
    *("scan_air", "scan_air_bins", "scan_scale"),
    *("scan_bad_pixels", "scan_rings", "scan_hardening"),
)
KSPACE = (
    *("pixel_mm", "size", "slice_spacing_mm", "axes"),
    *("coil_use", "maps", "virtual_coils", "mr_scale"),
    *("trajectory", "trajectory_unit", "correct_readouts"),
)
WATER_TOLD = "The attenuation of water is given: the energy is not needed for it."
CENTRE_TOLD = "The detector offset is given: it need not be found."
FAN_ONLY = "Only a fan has a source: choose fan rays first."


@dataclass(frozen=True)
class Offer:
    """A proposal of the geometry check, and the options that carry it out."""

    words: str
    residual: float  # relative: 0.02 is 2 %
    changes: dict[str, Any]


class GeometryDialog(QDialog):
    """Open with `open()`, never `exec()`; the answer comes as `given`.

    Parameters
    ----------
    name : of the file
    missing : options that are needed, as GeometryNeeded names them
    known : what was said already
    preview : called with the options some time after every valid edit; it must not block
    kind : sinogram or kspace: which options make sense
    """

    given = Signal(dict)
    preview_wanted = Signal(dict)

    def __init__(
        self,
        name: str,
        missing: Iterable[str],
        known: Mapping[str, Any] | None = None,
        preview: Callable[[dict[str, Any]], None] | None = None,
        parent: QWidget | None = None,
        kind: str = "sinogram",
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"How was {name} measured?")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        missing = tuple(missing)
        asks_rays = "scan_geometry" in missing
        required = (*missing, *(n for n in FAN if asks_rays and n not in missing))
        always = KSPACE if kind == "kspace" else SINOGRAM
        shown = {*required, *always, *(known or {})}
        rules = {name: only_with("scan_geometry", "fan", FAN_ONLY) for name in FAN if asks_rays}
        rules |= {
            "energy_kev": excludes("mu_water", "energy_kev", WATER_TOLD),
            "scan_find_centre": excludes("scan_offset_mm", "scan_find_centre", CENTRE_TOLD),
        }
        hidden = [n for n in InputOptions.__dataclass_fields__ if n not in shown]
        self.form = SettingsForm(InputOptions, required, rules, hidden=hidden, required=required)
        self.form.set_values(known or {})
        self.picture = ArrayPicture("Preview", "The preview appears when everything is known.")
        self.sentence = SentenceLabel()
        self.proposals = QVBoxLayout()
        self.buttons = QDialogButtonBox()
        self.ok = self.buttons.addButton("Open", QDialogButtonBox.ButtonRole.AcceptRole)
        self.cancel = self.buttons.addButton("Cancel", QDialogButtonBox.ButtonRole.RejectRole)
        self.cancel.setToolTip("Leave the file unopened.")
        self.timer = QTimer(self)
        self.timer.setSingleShot(True)
        self.timer.setInterval(PAUSE_MS)
        self._build(name, bool(missing))
        self.timer.timeout.connect(self._ask_preview)
        self.form.edited.connect(self._on_edited)
        self.buttons.accepted.connect(self._on_accepted)
        self.buttons.rejected.connect(self.reject)
        if preview is not None:
            self.preview_wanted.connect(preview)
        self._on_edited()

    def value(self) -> dict[str, Any]:
        """The options of the input that were given."""
        return self.form.value()

    def set_preview(self, image: NDArray | None, sentence: str = "") -> None:
        """The picture made with the present options, or a sentence about why there is none."""
        self.picture.set_array(image, "A quick reconstruction with these options.")
        self.sentence.say(sentence)

    def set_proposals(self, offers: Sequence[Offer], note: str = "") -> None:
        """What the data say, best first; ``note`` says what they cannot tell."""
        empty_layout(self.proposals)
        if offers:
            heading = QLabel("What the data say")
            font = heading.font()
            font.setBold(True)
            heading.setFont(font)
            self.proposals.addWidget(heading)
        for offer in offers:
            self.proposals.addWidget(self._row(offer))
        if note:
            words = SentenceLabel(self)
            words.say(note)
            self.proposals.addWidget(words)

    def _row(self, offer: Offer) -> QWidget:
        row = QFrame()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        words = SentenceLabel(row)
        words.say(offer.words)
        words.setToolTip(f"Relative residual {100 * offer.residual:.2f} %: smaller fits better.")
        apply = QPushButton("Apply")
        apply.setAccessibleName(f"Apply: {offer.words}")
        apply.setEnabled(bool(offer.changes))
        apply.setToolTip(
            "Put this reading into the fields and make the preview again."
            if offer.changes
            else "The fields say this already."
        )
        apply.clicked.connect(lambda: self.form.set_values(offer.changes))
        line.addWidget(words, 1)
        line.addWidget(apply)
        return row

    def _build(self, name: str, asks: bool) -> None:
        left = QWidget()
        column = in_column(spacing=8, margins=(0, 0, 8, 0), parent=left)
        intro = SentenceLabel(left)
        intro.say(
            f"{name} does not say this itself. Everything else is found out or assumed."
            if asks
            else f"{name} was read with these values; change what is wrong."
        )
        column.addWidget(intro)
        column.addWidget(self.form)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(left)
        scroll.setMinimumWidth(344)
        right = QVBoxLayout()
        right.setSpacing(8)
        self.picture.setMinimumSize(256, 256)
        right.addWidget(self.picture)
        right.addWidget(self.sentence)
        self.proposals.setSpacing(8)
        right.addLayout(self.proposals)
        right.addStretch(1)
        both = in_row((scroll, 1), (right, 1), spacing=16)
        in_column((both, 1), self.buttons, parent=self)
        self.resize(760, 520)

    def _on_edited(self) -> None:
        problem = self.form.problem()
        self.ok.setEnabled(not problem)
        self.ok.setToolTip(problem or "Read the file with these options.")
        if problem:
            self.timer.stop()
        else:
            self.timer.start()

    def _ask_preview(self) -> None:
        self.preview_wanted.emit(self.value())

    def _on_accepted(self) -> None:
        if self.form.valid:
            self.given.emit(self.value())
            self.accept()

    def done(self, result: int) -> None:
        self.timer.stop()
        super().done(result)
