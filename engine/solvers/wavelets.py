"""The image of few wavelet coefficients; Daubechies' with four taps, at all shifts at once.

An orthogonal wavelet transform halves its grid at every level and leaves blocks in an image, which
move with the grid. Here the grid is at every place ("cycle spinning"): the coefficients are those
of the transform without halving, scaled so that the sum of their sizes is the mean, over all
shifts of the image, of ||.||_1 of the orthogonal transform. The image goes on periodically, and may
have any size. The coarsest averages are left out, as constants are for total variation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.solvers.classical import Classical
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume
from engine.solvers.sparse import SparseSettings, sparsest
from engine.spec.settings import setting

ROOT = math.sqrt(3)
# Orthonormal: their squares add up to 1, and shifts by two are orthogonal to each other.
LOW_PASS = tuple(c / (4 * math.sqrt(2)) for c in (1 + ROOT, 3 + ROOT, 3 - ROOT, 1 - ROOT))
HIGH_PASS = tuple((-1) ** n * c for n, c in enumerate(reversed(LOW_PASS)))


def response(taps: tuple[float, ...], frequency: Tensor) -> Tensor:
    """The filter's Fourier transform over sqrt(2), so that |low|^2 + |high|^2 = 1."""
    terms = [c * torch.exp(2j * math.pi * n * frequency) for n, c in enumerate(taps)]
    return torch.stack(terms).sum(0) / math.sqrt(2)


class Wavelets:
    """K: images ``[B, C, H, W]`` to bands ``[3 levels, B, C, H, W]``, finest first."""

    groups: tuple[int, ...] = (2,)  # channels: the size of a complex coefficient

    def __init__(self, levels: int, like: Tensor) -> None:
        height, width = like.shape[-2:]
        self.levels = max(1, min(levels, int(math.log2(min(height, width)))))
        fy = torch.fft.fftfreq(height, dtype=torch.float64)
        fx = torch.fft.rfftfreq(width, dtype=torch.float64)
        rows, columns = (torch.ones_like(f).to(torch.cdouble) for f in (fy, fx))
        bands = []
        for level in range(self.levels):
            low_y, low_x = (response(LOW_PASS, 2**level * f) for f in (fy, fx))
            high_y, high_x = (response(HIGH_PASS, 2**level * f) for f in (fy, fx))
            for y, x in ((low_y, high_x), (high_y, low_x), (high_y, high_x)):
                # a coefficient of this level stands in one of 4^(level + 1) shifts
                bands.append(2.0 ** -(level + 1) * torch.outer(rows * y, columns * x))
            rows, columns = rows * low_y, columns * low_x
        complex_type = torch.cdouble if like.dtype == torch.float64 else torch.cfloat
        self.bands = torch.stack(bands).to(like.device, complex_type)[:, None, None]
        self.spectrum = self.bands.abs().square().sum((0, 1, 2))  # of K^T K, for rfft2

    def apply(self, x: Tensor) -> Tensor:
        return torch.fft.irfft2(self.bands * torch.fft.rfft2(x), s=x.shape[-2:])

    def transpose(self, coefficients: Tensor) -> Tensor:
        spectra = (self.bands.conj() * torch.fft.rfft2(coefficients)).sum(0)
        return torch.fft.irfft2(spectra, s=coefficients.shape[-2:])

    def normal(self, x: Tensor) -> Tensor:
        """K^T K x."""
        return torch.fft.irfft2(self.spectrum * torch.fft.rfft2(x), s=x.shape[-2:])


@dataclass(frozen=True)
class WaveletSettings(SparseSettings):
    wavelet_strength: float | None = setting(
        None,
        "Penalty on wavelet coefficients relative to ||A||^2: larger is smoother. By default it "
        "follows the noise of the measurement; 1e-4 where that is not known.",
        low=0,
        label="Wavelet penalty",
    )
    wavelet_levels: int = setting(
        4, "Wavelet levels: more also smooth coarser detail.", low=1, high=10
    )


class Wavelet(Classical[WaveletSettings]):
    """The image of least l1 norm of its wavelet coefficients that fits the data."""

    name, label = "wavelet", "l1-wavelet"
    help = "Few wavelet coefficients, fitting as well as the noise allows."
    place, colour, dash = 85, "#CC79A7", (10, 4)
    settings_class = WaveletSettings

    def fit(
        self, problem: Problem, settings: WaveletSettings, resume: Resume | None
    ) -> Iterator[Iteration]:
        like = problem.measurement.new_zeros(problem.operator.image_shape)
        wavelets = Wavelets(settings.wavelet_levels, like)
        return sparsest(problem, wavelets, settings, settings.wavelet_strength, resume)
