"""The MRI acquisition: its form and the mask it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from app.forms.ct_panel import IS_SIMULATED, WAS_MEASURED
from app.forms.form import AcquisitionPanel, SettingsForm
from app.forms.history import UndoValues
from app.forms.pictures import MaskPicture
from app.forms.rows import SentenceLabel
from app.theme import tabular
from engine.spec.acquisition import MRIAcquisition
from engine.spec.errors import RequestError

if TYPE_CHECKING:
    from engine.data.kspace.trajectory import Trajectory

BASIC = ("acceleration", "mask", "acs_lines", "kspace_noise")
PLAIN = ("acceleration",)
THINNING = ("acceleration", "mask", "acs_lines")


class MRIPanel(AcquisitionPanel):
    """Says which lines of k-space are kept."""

    def __init__(self, history: UndoValues | None = None, parent: QWidget | None = None) -> None:
        self.picture = MaskPicture()
        self.words = SentenceLabel()
        self.words.setFont(tabular(self.words.font()))
        self.lines = 0  # 0: no data yet
        self.seed = 0
        self.measured: NDArray[np.bool_] | None = None
        self.trajectory: Trajectory | None = None
        form = SettingsForm(MRIAcquisition, BASIC, history=history)
        super().__init__(form, self.picture, self.words, parent=parent)

    def set_expert(self, on: bool) -> None:
        self.form.show_only(None if on else PLAIN)

    def set_simulated(self, lines: int, seed: int = 0) -> None:
        """The open data are an image with ``lines`` columns, which are the lines of k-space."""
        self.lines, self.seed, self.measured, self.trajectory = lines, seed, None, None
        self.form.set_context(locks={"noise": IS_SIMULATED}, check=self._mask)
        self._refresh()

    def set_measured(
        self,
        sampled: NDArray,
        coils: int = 1,
        seed: int = 0,
        trajectory: Trajectory | None = None,
        noise: str = "not known",
    ) -> None:
        """The open data are k-space: ``sampled`` ``(W,)`` or ``(H, W)`` can only lose lines.

        With a ``trajectory`` these are spokes, which can be left out.
        """
        self.measured, self.trajectory = np.asarray(sampled, dtype=bool), trajectory
        self.lines, self.seed = int(self.measured.shape[-1]), seed
        complete = self.measured.all() and trajectory is None
        blank = {} if complete else dict.fromkeys(THINNING, "as measured")
        blank["kspace_noise"] = noise
        locks = {
            "coils": f"The data were measured with {coils} coils.",
            "fine_grid": WAS_MEASURED,
        }
        if trajectory is not None:
            locks |= dict.fromkeys(THINNING[1:], "The data were not measured line by line.")
        self.form.set_context(
            blank=blank,
            defaults={"coils": coils},
            locks=locks,
            check=self._mask,
        )
        self._refresh()

    def set_seed(self, seed: int) -> None:
        """Random masks follow the run's seed."""
        self.seed = seed
        self.form.refresh()
        self._refresh()

    def _mask(self, asked: dict[str, Any]) -> tuple[NDArray[np.bool_], str]:
        """The kept lines and what they amount to; raises RequestError."""
        if self.trajectory is not None:
            chosen = self.trajectory.kept(asked.get("acceleration"))
            words = f"{len(chosen)} of {self.trajectory.spokes} spokes."
            return self.trajectory.cells(chosen), words
        # Brings torch with it: only once data are open, when it is loaded anyway.
        from engine.physics.masks import build_mask, given

        full = MRIAcquisition.from_dict(asked)
        own = None if self.measured is None else given(self.measured)
        partial = own is not None and not own.sampled.all()
        if own is not None and partial and not any(name in asked for name in THINNING):
            return own.sampled, _words(own.sampled, own.acs_lines, "as measured")
        if own is not None and partial and full.acceleration <= own.true_acceleration:
            note = f"asked for {full.acceleration:g}, which takes nothing away"
            return own.sampled, _words(own.sampled, own.acs_lines, note)
        mask = build_mask(
            full.mask, self.lines, full.acceleration, acs_lines=full.acs_lines, seed=self.seed
        )
        sampled = mask.sampled if own is None else mask.sampled & own.sampled
        if not sampled.any():
            raise RequestError("None of the measured lines belongs to this ⟦mask⟧.")
        return sampled, _words(sampled, mask.acs_lines, f"asked for {full.acceleration:g}")

    def _refresh(self) -> None:
        """Show what is asked for; a mask that cannot be made is not shown as another one."""
        if not self.lines:
            return
        wrong = {n: s for n, s in self.form.faults.items() if n in (*THINNING, "")}
        if wrong:
            self.picture.say("No mask fits these values.")
            self.words.say("")
            return
        if not self.valid:
            return
        sampled, words = self._mask(self.value())
        self.picture.set_mask(sampled, words)
        self.words.say(words)


def _words(sampled: NDArray[np.bool_], acs_lines: int, note: str) -> str:
    lines = sampled.reshape(-1, sampled.shape[-1]).any(axis=0)
    rate = sampled.size / int(sampled.sum())
    text = f"True acceleration {rate:.2f} ({note}): {int(lines.sum())} of {lines.size} lines"
    return text + (f", {acs_lines} of them the full centre." if acs_lines else ".")
