"""The CT acquisition: its form, the covered angles and the sinogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from app.forms.dial import PolarDial
from app.forms.form import AcquisitionPanel, SettingsForm
from app.forms.history import UndoValues
from app.forms.pictures import SinogramStrip
from engine.data.sinogram.view_selection import select_views
from engine.spec.acquisition import CTAcquisition
from engine.spec.settings import Rule, excludes, only_if_given, only_with

BASIC = ("views", "angular_range", "start_angle", "geometry", "photons")
# What a measured scan still takes (the engine refuses the rest).
MEASURED = (
    *("views", "angular_range", "start_angle", "fbp_filter", "backend"),
    *("photons", "electronic_noise", "gaussian_noise", "noise", "weighted", "aperture"),
)
PLAIN = ("views", "angular_range", "photons")
ANGLES = ("views", "angular_range", "start_angle")
FAN_ONLY = "Only a fan has a source: choose fan rays first."
PHOTONS_ONLY = "Only with photon noise: give photons per ray first."
WAS_MEASURED = "This describes a simulated scan, and the data were measured."
IS_SIMULATED = "A simulated scan has the noise that is given here: there is none to estimate."

RULES: dict[str, Rule] = {
    "source_origin_mm": only_with("geometry", "fan", FAN_ONLY),
    "source_detector_mm": only_with("geometry", "fan", FAN_ONLY),
    "electronic_noise": only_if_given("photons", PHOTONS_ONLY),
    "weighted": only_if_given("photons", PHOTONS_ONLY),
    "gaussian_noise": excludes(
        "photons", "gaussian_noise", "Photons per ray are given: clear them to use this instead."
    ),
    "photons": excludes(
        "gaussian_noise", "photons", "Gaussian noise is given: set it to 0 to use photons instead."
    ),
}


class CTPanel(AcquisitionPanel):
    """Says how the image is measured."""

    def __init__(self, history: UndoValues | None = None, parent: QWidget | None = None) -> None:
        self.dial = PolarDial()
        self.strip = SinogramStrip()
        self.angles_deg: NDArray[np.float64] | None = None  # of a measured scan
        form = SettingsForm(CTAcquisition, BASIC, RULES, history=history)
        super().__init__(form, self.dial, self.strip, parent=parent)

    def set_expert(self, on: bool) -> None:
        self.form.show_only(None if on else PLAIN)
        self.strip.setVisible(on)

    def set_sinogram(self, sinogram: NDArray | None, kept: Sequence[int] | None = None) -> None:
        """``[views, detectors]``; of measured data all views, of which the panel knows ``kept``."""
        self.strip.set_sinogram(sinogram, kept)
        self._refresh()

    def set_simulated(self, defaults: dict[str, Any] | None = None) -> None:
        """The open data are an image: every control is free again; other ``defaults`` are its."""
        self.angles_deg = None
        self.form.rules["weighted"] = RULES["weighted"]
        self.form.set_context(defaults=defaults, locks={"noise": IS_SIMULATED})
        self._refresh()

    def set_measured(
        self,
        views: int,
        angular_range: float,
        start_angle: float = 0.0,
        geometry: str = "parallel",
        angles_deg: Sequence[float] | None = None,
        photons: str = "not known",
    ) -> None:
        """The open data are a sinogram: views can be dropped, never added."""
        even = start_angle + np.arange(views) * angular_range / views
        self.angles_deg = even if angles_deg is None else np.asarray(angles_deg, np.float64)
        locked = [name for name in self.form.rows if name not in MEASURED]
        self.form.rules.pop("weighted", None)  # estimated photons weigh the rays, too
        blank = {
            "views": f"all {views}",
            "angular_range": f"all {angular_range:.4g}",
            "start_angle": f"as measured, {start_angle:.4g}",
            "photons": photons,
        }
        self.form.set_context(
            blank=blank,
            defaults={"geometry": geometry},
            locks=dict.fromkeys(locked, WAS_MEASURED),
            check=self._select,
        )
        self._refresh()

    def kept(self) -> list[int] | None:
        """Numbers of the measured views in use; None when the scan is simulated or invalid."""
        if self.angles_deg is None or not self.valid:
            return None
        return [int(number) for number in self._select(self.value())]

    def _select(self, asked: dict[str, Any]) -> NDArray[np.intp]:
        assert self.angles_deg is not None
        return select_views(
            np.deg2rad(self.angles_deg),
            asked.get("views"),
            asked.get("angular_range"),
            asked.get("start_angle"),
        )

    def _refresh(self) -> None:
        """Show what is asked for, as soon as the fields that the pictures need are right."""
        faults = self.form.faults
        wrong = [sentence for name, sentence in faults.items() if name in (*ANGLES, "")]
        if wrong:
            self.dial.set_wrong(wrong[0])
            return
        values = self.form.history
        kept = self.kept()
        if kept is None or self.angles_deg is None:
            if self.angles_deg is None:
                fan = values["geometry"] == "fan"
                views, span, start = (values[name] for name in ANGLES)
                self.dial.set_coverage(views, span, start, fan)
            return
        angles = self.angles_deg[kept]
        step = abs(self.angles_deg[1] - self.angles_deg[0]) if len(self.angles_deg) > 1 else 0.0
        asked = self.value()
        low, span = float(angles.min()), float(np.ptp(angles) + step)
        self.dial.set_coverage(
            len(kept),
            round(asked.get("angular_range", min(span, 360.0)), 3),
            round(asked.get("start_angle", low), 3),
            self.form.history["geometry"] == "fan",
            [float(angle) for angle in angles],
        )
        self.strip.set_kept(kept)
