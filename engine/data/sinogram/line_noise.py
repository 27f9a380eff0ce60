"""The noise of measured line integrals: declared, or estimated from the scan itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.physics.noise_estimate import Floats, photon_noise
from engine.physics.problem import Problem
from engine.physics.units import noise_scale, physical_line_integrals
from engine.spec.acquisition import CTAcquisition

# Line integrals beyond this hold no photons to speak of.
THICKEST = 12.0


@dataclass(frozen=True)
class LineNoise:
    """Counted photons, or one SD for every ray; one number per slice, or one for all.

    Attributes
    ----------
    origin : how it is known
    photons : per ray in air
    electronic : SD of the detector's own noise, in photons
    sd : of a line integral
    """

    origin: str
    photons: tuple[float, ...] = ()
    electronic: float = 0.0
    sd: float = 0.0

    @property
    def known(self) -> bool:
        return bool(self.photons) or self.sd > 0

    @property
    def words(self) -> str:
        if self.photons:
            mean = float(f"{sum(self.photons) / len(self.photons):.2g}")
            return f"about {mean:,.0f} photons per ray in air"
        return f"SD {self.sd:.3g} of a line integral" if self.sd else "not known"

    def of(self, y: Tensor, scale: float, weighted: bool) -> tuple[Tensor | float, Tensor | None]:
        """SD of a ray of weight 1 in units ``scale`` times finer, and the weights, of mean 1.

        ``y`` are line integrals ``[B, 1, views, detectors]``. To first order a ray that counted c
        photons has variance (c + electronic^2) / c^2.
        """
        if not self.photons:
            return scale * self.sd, None
        photons = torch.tensor(self.photons, dtype=torch.float64).view(-1, 1, 1, 1)
        counts = photons * torch.exp(-y.double().clamp(max=THICKEST))
        information = counts.square() / (counts + self.electronic**2)
        if not weighted:  # rays of unlike noise that count alike: their mean variance
            return (scale * (1 / information).mean((1, 2, 3), keepdim=True).sqrt()).to(y), None
        mean = information.mean((1, 2, 3), keepdim=True)
        return (scale * mean.rsqrt()).to(y), (information / mean).to(y)

    def to_dict(self) -> dict[str, Any]:
        return {
            "origin": self.origin,
            "photons": list(self.photons),
            "electronic_sd": self.electronic,
            "sd_of_line_integral": self.sd or None,
        }


def declared_noise(asked: CTAcquisition) -> LineNoise | None:
    if asked.photons is not None:
        return LineNoise("given", (asked.photons,), asked.electronic_noise)
    return LineNoise("given", sd=asked.gaussian_noise) if asked.gaussian_noise > 0 else None


def with_estimated_noise(problem: Problem) -> Problem:
    """A simulated scan as if nobody knew its noise; how much of it was found is recorded."""
    operator, y = problem.operator, problem.measurement
    ones = torch.ones(1, *operator.image_shape).to(y)
    lines = physical_line_integrals(y, operator.forward(ones), problem.intensity)
    found = estimated_noise([one[0].cpu().numpy() for one in lines])
    sigma, weights = found.of(lines, noise_scale(problem.intensity), weighted=True)
    ratio = torch.as_tensor(sigma) / torch.as_tensor(problem.noise_sigma).to(y)
    return replace(
        problem,
        noise_sigma=sigma,
        noise_origin=found.origin,
        weights=weights,
        provenance=problem.provenance | {"noise_found": ratio.flatten().tolist()},
    )


def estimated_noise(slices: Sequence[Floats]) -> LineNoise:
    """Of sinograms ``[views, detectors]``, each from its own neighbouring rays."""
    found = [photon_noise(one) for one in slices]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return LineNoise("not known")
    return LineNoise("estimated from neighbouring rays", tuple(known))
