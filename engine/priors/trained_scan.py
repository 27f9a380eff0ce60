"""The scan that a supervised network was trained for, and how another scan differs from it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from engine.priors.prior import PriorInfo
from engine.spec.acquisition import CTAcquisition
from engine.spec.errors import Sentence
from engine.spec.settings import setting

# how a scan is computed, not what it shows
NOT_COMPARED = ("backend", "weighted", "pixel_mm", "fine_grid", "aperture")
FAN_ONLY = ("source_origin_mm", "source_detector_mm")


@dataclass(frozen=True)
class TrainedScan(CTAcquisition):
    """A simulated CT scan of slices that do not say how large they are."""

    pixel_mm: float = setting(
        1.4, "Pixel size of the slices: matters for noise and fan beams.", above=0, unit="mm"
    )

    def words(self) -> str:
        noise = "no noise"
        if self.photons is not None:
            noise = f"{self.photons:g} photons per ray"
        elif self.gaussian_noise > 0:
            noise = f"Gaussian noise of {self.gaussian_noise:g}"
        beam = "" if self.geometry == "parallel" else f", {self.geometry} beam"
        return f"{self.views} views over {self.angular_range:g} degrees{beam}, {noise}"

    def differences(self, other: CTAcquisition) -> list[str]:
        """What ``other`` does otherwise, such as 'views 40 instead of 20'."""
        skipped = NOT_COMPARED if self.geometry == "fan" else (*NOT_COMPARED, *FAN_ONLY)
        found = []
        for name in (field.name for field in fields(CTAcquisition) if field.name not in skipped):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                found.append(f"{name.replace('_', ' ')} {_said(theirs)} instead of {_said(ours)}")
        return found


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def trained_scan(info: PriorInfo) -> TrainedScan | None:
    """The scan whose FBP images a supervised network corrects; None for a denoiser."""
    values = info.details.get("preconditioning_kwargs", {}).get("scan")
    return None if values is None else TrainedScan.from_dict(values)


def unfamiliar(info: PriorInfo, kind: str, acquisition: dict[str, Any]) -> str | None:
    """One sentence if the network has not seen such a scan; None if it has, or is a denoiser.

    ``kind`` is that of the input and ``acquisition`` what was asked for, as a job has them.
    """
    scan = trained_scan(info)
    if scan is None:
        return None
    if kind != "image":
        differs = ["the data are measured, not simulated"]
    elif "task" in acquisition:
        differs = [f"the images are no FBP but come from ⟦task⟧ {acquisition['task']}"]
    else:
        differs = scan.differences(CTAcquisition.from_dict(acquisition))
    if not differs:
        return None
    said = f"{info.name} was trained for {scan.words()}; this scan differs: {', '.join(differs)}."
    return Sentence(said)
