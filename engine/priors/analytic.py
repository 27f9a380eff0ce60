"""Priors with a closed form: a Gaussian of known spectrum (Wiener), and total variation."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.units import IntensityMap
from engine.priors.prior import Prior, analytic_info


def power_law_spectrum(
    height: int, width: int, variance: float, corner: float, exponent: float
) -> Tensor:
    """Variance of each orthonormal DFT coefficient, falling as 1 / (1 + (f/corner)^2)^(p/2).

    ``corner`` is in cycles per pixel; the mean over all coefficients is the pixel ``variance``.
    """
    fy = torch.fft.fftfreq(height, dtype=torch.float64)[:, None]
    fx = torch.fft.fftfreq(width, dtype=torch.float64)[None, :]
    shape = (1 + (fy**2 + fx**2) / corner**2) ** (-exponent / 2)
    return variance * shape / shape.mean()


class GaussianPrior(Prior):
    """x ~ N(mean, C) with C diagonal in the DFT; D(x; sigma) = E[x0 | x] in closed form."""

    def __init__(
        self,
        intensity: IntensityMap,
        channels: int,
        mean: float = 0.0,
        variance: float = 0.25,
        corner: float = 0.01,
        exponent: float = 3.0,
    ) -> None:
        self.mean, self.variance, self.corner, self.exponent = mean, variance, corner, exponent
        self._spectra: dict[tuple, Tensor] = {}
        details = {"mean": mean, "variance": variance, "corner": corner, "exponent": exponent}
        self.info = analytic_info(
            "gaussian",
            "Stationary Gaussian with a power-law spectrum; the Wiener filter.",
            intensity,
            channels,
            details,
        )

    def spectrum(self, x: Tensor) -> Tensor:
        """S(f) for the size of ``x``, computed once per size, type and device."""
        height, width = x.shape[-2:]
        key = (height, width, x.dtype, x.device)
        if key not in self._spectra:
            s = power_law_spectrum(height, width, self.variance, self.corner, self.exponent)
            self._spectra[key] = s.to(x)
        return self._spectra[key]

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        s = self.spectrum(x)
        shrunk = torch.fft.fft2(x - self.mean) * (s / (s + sigma**2))
        return self.mean + torch.fft.ifft2(shrunk).real


def gradient(x: Tensor) -> Tensor:
    """Forward differences ``[2, B, C, H, W]`` (down, right), zero across the last edge."""
    g = x.new_zeros((2, *x.shape))
    g[0, ..., :-1, :] = x[..., 1:, :] - x[..., :-1, :]
    g[1, ..., :, :-1] = x[..., :, 1:] - x[..., :, :-1]
    return g


def divergence(p: Tensor) -> Tensor:
    """Minus the adjoint of ``gradient``."""
    d = torch.zeros_like(p[0])
    d[..., :-1, :] += p[0, ..., :-1, :]
    d[..., 1:, :] -= p[0, ..., :-1, :]
    d[..., :, :-1] += p[1, ..., :, :-1]
    d[..., :, 1:] -= p[1, ..., :, :-1]
    return d


def total_variation(x: Tensor) -> Tensor:
    """Isotropic, channels joined (the magnitude of a complex gradient); per sample."""
    return gradient(x).square().sum((0, 2)).sqrt().flatten(1).sum(1)


def tv_prox(
    x: Tensor, weight: float, iterations: int, dual: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """argmin_z 1/2 ||z - x||^2 + weight TV(z), by fast projected gradient on the dual.

    Returns the image and the dual field, which warm-starts the next call
    (Beck and Teboulle 2009; the step 1/8 is 1 / ||gradient||^2).
    """
    if weight == 0:
        return x, torch.zeros((2, *x.shape), dtype=x.dtype, device=x.device)
    p = torch.zeros((2, *x.shape), dtype=x.dtype, device=x.device) if dual is None else dual
    q, t = p, 1.0
    for _ in range(iterations):
        ascent = q + gradient(divergence(q) + x / weight) / 8
        length = ascent.square().sum((0, 2), keepdim=True).sqrt()
        p_next = ascent / length.clamp_min(1.0)
        t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
        q = p_next + ((t - 1) / t_next) * (p_next - p)
        p, t = p_next, t_next
    return x + weight * divergence(p), p


class TVPrior(Prior):
    """D(x; sigma) = prox of strength * sigma * TV.

    A weight proportional to sigma is what removes white noise of SD sigma; at any one level
    the denoiser is an exact proximal map.
    """

    def __init__(
        self, intensity: IntensityMap, channels: int, strength: float = 1.2, iterations: int = 30
    ) -> None:
        self.strength, self.iterations = strength, iterations
        details = {"strength": strength, "iterations": iterations}
        self.info = analytic_info(
            "tv",
            "Total variation, solved as a proximal map; no training.",
            intensity,
            channels,
            details,
        )

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        return tv_prox(x, self.strength * sigma, self.iterations)[0]
