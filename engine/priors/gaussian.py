"""A Gaussian prior with known spectrum: its denoiser is the Wiener filter, exactly."""

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
