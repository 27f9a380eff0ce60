"""The noise of measured line integrals: declared, or estimated from the scan itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.noise_estimate import Detector, Floats, photon_noise
from engine.physics.problem import Problem
from engine.physics.units import noise_scale, physical_line_integrals
from engine.spec.acquisition import CTAcquisition

# Line integrals beyond this hold no photons to speak of.
THICKEST = 12.0
BY_TRANSFER = "photon transfer: how flat and dark frames vary"
DIFFERS = 1.3  # between two ways to find the SD of the noise


@dataclass(frozen=True)
class LineNoise:
    """Counted photons, or one SD for every ray; one number per slice, or one for all.

    Attributes
    ----------
    origin : how it is known
    photons : per ray in air
    electronic : SD of the detector's own noise, in photons
    sd : of a line integral
    profile : how much brighter than the mean each bin is in air, by slice; all alike without it
    gain : counts of the detector for each photon, where that was found
    neighbours : the photons per ray that neighbouring rays speak for, where both were looked at
    """

    origin: str
    photons: tuple[float, ...] = ()
    electronic: float = 0.0
    sd: float = 0.0
    profile: tuple[tuple[float, ...], ...] = ()
    gain: float | None = None
    neighbours: tuple[float, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.photons) or self.sd > 0

    @property
    def words(self) -> str:
        if self.photons:
            mean = float(f"{sum(self.photons) / len(self.photons):.2g}")
            own = f", electronic noise {self.electronic:.2g} photons" if self.gain else ""
            return f"about {mean:,.0f} photons per ray in air{own}"
        return f"SD {self.sd:.3g} of a line integral" if self.sd else "not known"

    def of(self, y: Tensor, scale: float, weighted: bool) -> tuple[Tensor | float, Tensor | None]:
        """SD of a ray of weight 1 in units ``scale`` times finer, and the weights, of mean 1.

        ``y`` are line integrals ``[B, 1, views, detectors]``. To first order a ray that counted c
        photons has variance (c + electronic^2) / c^2.
        """
        if not self.photons:
            return scale * self.sd, None
        photons = torch.tensor(self.photons, dtype=torch.float64).view(-1, 1, 1, 1)
        if self.profile:
            photons = photons * torch.tensor(self.profile, dtype=torch.float64)[:, None, None]
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
            "gain": self.gain,
            "photons_by_neighbouring_rays": list(self.neighbours) or None,
        }

    def disagreement(self) -> str:
        """What to say when neighbouring rays speak for another noise level; else nothing."""
        if not self.neighbours or not self.profile:
            return ""
        ours = [
            np.mean((n + self.electronic**2) / n**2)  # of a line integral through air
            for photons, profile in zip(self.photons, self.profile, strict=True)
            for n in [photons * np.array([part for part in profile if part > DARK])]
        ]
        ratio = float(np.sqrt(np.mean(1 / np.array(self.neighbours)) / np.mean(ours)))
        if 1 / DIFFERS <= ratio <= DIFFERS:
            return ""
        why = (
            "neighbouring bins may share their noise, as behind a scintillator"
            if ratio < 1
            else "the scan may hold more than the noise of photons: rings, or a beam that changed"
        )
        return (
            f"Flat and dark frames speak for {self.words}, but "
            f"neighbouring rays for noise {ratio:.2g} times as strong: {why}."
        )


DARK = 0.05  # of the mean brightness; a bin with less tells little


def transferred_noise(
    detectors: Sequence[Detector | None], slices: Sequence[Floats], flip: bool, binning: int
) -> LineNoise | None:
    """Of sinograms as they are used, and what the frames said of each one's row of the detector.

    Gain and electronic noise belong to the detector: the mean over its rows is taken.
    """
    known = [one for one in detectors if one is not None]
    if not known or len(known) < len(detectors):
        return None
    gain = float(np.mean([one.gain for one in known]))
    electronic = float(np.sqrt(np.mean([one.electronic**2 for one in known]))) / gain
    bins: list[NDArray[np.float64]] = []
    for one in known:
        photons = one.photons * one.gain / gain
        photons = photons[::-1] if flip else photons
        kept = photons.size // binning
        bins.append(photons[: kept * binning].reshape(kept, binning).sum(1))
    means = [float(one.mean()) for one in bins]
    if min(means) <= 0:
        return None
    beside = [photon_noise(one) for one in slices]
    return LineNoise(
        BY_TRANSFER,
        tuple(means),
        electronic * binning**0.5,
        profile=tuple(
            tuple(np.maximum(one / mean, DARK).tolist())
            for one, mean in zip(bins, means, strict=True)
        ),
        gain=gain,
        neighbours=() if None in beside else tuple(one for one in beside if one is not None),
    )


def declared_noise(asked: CTAcquisition) -> LineNoise | None:
    if asked.photons is not None:
        return LineNoise("given", (asked.photons,), asked.electronic_noise)
    return LineNoise("given", sd=asked.gaussian_noise) if asked.gaussian_noise > 0 else None


def with_noise_of_rays(problem: Problem) -> Problem:
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
