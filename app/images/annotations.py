"""Which words stand over an image: composed here, drawn by the overlay. No widgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.images import text
from app.images.display import LinkedView
from app.images.orientation import edge_letters
from app.images.overlay import ColourBar, OverlayText

if TYPE_CHECKING:
    from engine.data.dataset import Placement
    from engine.metrics.roi import RoiStatistics


@dataclass
class Annotations:
    """What a pane was told about its image, beside the pixels."""

    patient: tuple[str, ...] = ()
    patient_masked: bool = True
    run_lines: tuple[str, ...] = ()
    placement: Placement | None = None
    statistics: RoiStatistics | None = None
    not_finite: int = 0

    def compose(
        self,
        link: LinkedView,
        modality: str,
        window_text: str,
        readout: str,
        bar: ColourBar | None,
    ) -> OverlayText:
        state = link.state
        masked = (text.MASKED,) if self.patient else ()
        return OverlayText(
            top_left=masked if self.patient_masked else self.patient,
            top_right=(*self.run_lines, "RESEARCH") if self.run_lines else (),
            bottom_left=(readout, window_text, text.zoom_text(state.zoom, state.orientation)),
            bottom_right=self._bottom_right(link, modality),
            letters=edge_letters(self.placement, state.orientation),
            bar=bar,
        )

    def _bottom_right(self, link: LinkedView, modality: str) -> tuple[str, ...]:
        lines = []
        if self.not_finite:
            lines.append(f"{self.not_finite} px not a number")
        if self.statistics is not None:
            unit = text.unit_of(modality)
            digits = ".1f" if modality == "CT" else ".4g"
            lines.append(f"mean {self.statistics.mean:{digits}} {unit}")
            lines.append(f"SD {self.statistics.sd:{digits}} {unit}")
        if link.slice_count > 1:
            lines.append(f"Slice {link.state.slice + 1} / {link.slice_count}")
        return tuple(lines)
