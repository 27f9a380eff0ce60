"""Measurement noise: photon counts for CT, thermal noise for MRI.

Every draw is made on the CPU in float64 and then moved, so that a seed gives the same noise on
every device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.physics.masks import SamplingMask
from engine.spec.errors import RequestError

# A ray whose count falls below this is starved: it is read as half a photon, because the
# logarithm of nothing does not exist. One photon is an ordinary, if poor, reading.
MIN_COUNT = 0.5


@dataclass(frozen=True)
class NoisyLineIntegrals:
    """A photon-counting measurement and what is known about its noise.

    Attributes
    ----------
    line_integrals : Tensor
        Noisy, in the shape, type and device of the clean ones.
    sigma : float
        SD of the noise of a ray of weight 1: ray i has variance sigma^2 / W_i.
    weights : Tensor
        Statistical weights W, inverse variances scaled to a mean of 1.
    starved : int
        Number of rays that counted less than `MIN_COUNT` and were raised to it.
    """

    line_integrals: Tensor
    sigma: float
    weights: Tensor
    starved: int


def poisson_line_integrals(
    y: Tensor,
    photons: float,
    electronic_sd: float = 0.0,
    generator: torch.Generator | None = None,
) -> NoisyLineIntegrals:
    """Line integrals as a photon-counting measurement would return them.

    Parameters
    ----------
    y : Tensor
        Noise-free line integrals of attenuation: physical (dimensionless), not normalised.
    photons : float
        Photons per ray with nothing in the beam, I0.
    electronic_sd : float
        SD of the detector's electronic noise, in photons.

    Notes
    -----
    Counts c ~ Poisson(I0 exp(-y)) + N(0, sd^2); the noisy line integral is log(I0 / c). To first
    order its variance is (c + sd^2) / c^2, and the weights are the inverse of that, taken from
    the measured counts, which are all a real scan would have. The logarithm makes the values
    biased by about +1 / (2 c): small above some tens of photons, not near starvation.
    """
    if not (math.isfinite(photons) and photons > 0):
        raise RequestError(f"The number of photons per ray must be positive, not {photons:g}.")
    _check_sd(electronic_sd, "electronic noise")
    _check_finite(y)
    source = _cpu_generator(generator)
    clean = y.detach().to("cpu", torch.float64)
    expected = photons * torch.exp(-clean)
    if not bool((expected < 1e18).all()):
        # Counts are drawn as 64-bit integers.
        raise RequestError("The photon counts are too large; check the sign and unit of the data.")
    counts = torch.poisson(expected, generator=source)
    if electronic_sd > 0:
        counts += electronic_sd * torch.randn(counts.shape, generator=source, dtype=torch.float64)
    starved = int((counts < MIN_COUNT).sum())
    counts = counts.clamp_min(MIN_COUNT)
    information = counts.square() / (counts + electronic_sd**2)
    mean_information = float(information.mean())
    return NoisyLineIntegrals(
        line_integrals=torch.log(photons / counts).to(y),
        sigma=1 / math.sqrt(mean_information),
        weights=(information / mean_information).to(y),
        starved=starved,
    )


def gaussian(y: Tensor, sd: float, generator: torch.Generator | None = None) -> Tensor:
    """``y`` with independent Gaussian noise of one SD on every sample, in the units of ``y``."""
    _check_sd(sd, "noise")
    _check_finite(y)
    return y + _normal(y, sd, generator)


def complex_gaussian(
    y: Tensor,
    sd: float,
    generator: torch.Generator | None = None,
    mask: SamplingMask | Tensor | None = None,
) -> Tensor:
    """K-space ``y``, stored as real channels, with thermal noise on it.

    ``sd`` is that of the real and of the imaginary part each, so a complex sample has variance
    2 sd^2. With a mask only measured samples are touched; each gets the noise it would have
    without one, so masks can be compared on the same noise.
    """
    _check_sd(sd, "noise")
    _check_finite(y)
    if y.shape[1] % 2:
        raise RequestError(f"Complex data needs an even number of channels, not {y.shape[1]}.")
    noise = _normal(y, sd, generator)
    if mask is not None:
        sampled = mask.to_tensor() if isinstance(mask, SamplingMask) else mask
        noise = noise * sampled.to(y.device, torch.bool)
    return y + noise


def _normal(y: Tensor, sd: float, generator: torch.Generator | None) -> Tensor:
    draw = torch.randn(y.shape, generator=_cpu_generator(generator), dtype=torch.float64)
    return (sd * draw).to(y)


def _cpu_generator(generator: torch.Generator | None) -> torch.Generator | None:
    """A CPU generator that follows the given one, wherever that lives."""
    if generator is None or generator.device.type == "cpu":
        return generator
    seed = torch.randint(2**62, (), generator=generator, device=generator.device)
    return torch.Generator().manual_seed(int(seed))


def _check_sd(sd: float, what: str) -> None:
    if not (math.isfinite(sd) and sd >= 0):
        raise RequestError(f"The SD of the {what} must not be negative ({sd:g}).")


def _check_finite(y: Tensor) -> None:
    if y.numel() == 0 or not bool(torch.isfinite(y).all()):
        raise RequestError("The measurement is empty or holds NaN or infinite values.")
