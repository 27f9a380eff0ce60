"""Spectral homogenization: make the denoiser's input look like white noise at level sigma.

After the data step, v - z is coloured: strong where the measurement says much, weak where it
says nothing. A denoiser trained on white noise misreads it. Homogenization adds Gaussian
noise only where the spectrum falls short of sigma^2 H W, so that the sum is flat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.spec.errors import RequestError
from engine.spec.settings import Settings, setting

FLOOR = 1e-6  # of sigma^2 H W: keeps the square root away from zero


@dataclass(frozen=True)
class HomogenizeSettings(Settings):
    """How the residual's power is smoothed and how the missing power is drawn."""

    sh_amplitude: str = setting(
        "gaussian",
        "Missing power drawn as Gaussian noise, or with fixed modulus and random phase "
        "(the paper's Algorithm 2).",
        choices=("gaussian", "phase"),
    )
    sh_kernel: str = setting(
        "box", "Shape of the window that smooths the power spectrum.", choices=("box", "gaussian")
    )
    sh_width: int = setting(
        7, "Width of that window; wider gives a smoother estimate.", low=1, high=63, unit="bins"
    )
    sh_padding: str = setting(
        "circular",
        "Spectrum borders: circular is exact; zero repeats the published code.",
        choices=("circular", "zero"),
    )
    sh_aggregate: str = setting(
        "sample",
        "Estimate the spectrum per slice and channel, or averaged over the whole batch.",
        choices=("sample", "batch_mean"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sh_width % 2 == 0:
            raise RequestError(f"⟦sh_width⟧ must be odd, not {self.sh_width}.")


def power(r: Tensor) -> Tensor:
    """|F r|^2 with the unnormalised DFT: white noise of SD sigma has mean sigma^2 H W."""
    return torch.fft.fft2(r).abs().square()


def smooth(spectrum: Tensor, settings: HomogenizeSettings) -> Tensor:
    """Average each bin with its neighbours on the DFT torus."""
    width, half = settings.sh_width, settings.sh_width // 2
    line = [1.0] * width
    if settings.sh_kernel != "box":
        line = [math.exp(-0.5 * ((i - half) / (width / 4)) ** 2) for i in range(width)]
    weights = [weight / sum(line) for weight in line]
    mode = "circular" if settings.sh_padding == "circular" else "constant"
    for dim, pad in ((-1, (half, half, 0, 0)), (-2, (0, 0, half, half))):
        # shifted sums: on a CPU five times as fast as a convolution with one channel
        count, padded = spectrum.shape[dim], F.pad(spectrum, pad, mode=mode)
        spectrum = weights[0] * padded.narrow(dim, 0, count)
        for i in range(1, width):
            spectrum.add_(padded.narrow(dim, i, count), alpha=weights[i])
    return spectrum


def deficit(r: Tensor, sigma: float, settings: HomogenizeSettings) -> Tensor:
    """max(floor, sigma^2 H W - S): the power that is missing for a flat spectrum."""
    target = sigma**2 * r.shape[-2] * r.shape[-1]
    estimate = smooth(power(r), settings)
    if settings.sh_aggregate == "batch_mean":
        estimate = estimate.mean((0, 1), keepdim=True).expand_as(r)
    return (target - estimate).clamp_min(FLOOR * target)


def noise_with_power(spectrum: Tensor, n: Tensor, amplitude: str) -> Tensor:
    """Real noise whose expected DFT power is ``spectrum``, made from white noise ``n``."""
    white = torch.fft.fft2(n)
    if amplitude == "phase":
        modulus = white.abs()
        unit = torch.where(modulus > 0, white / modulus, torch.ones_like(white))
    else:
        unit = white / (n.shape[-2] * n.shape[-1]) ** 0.5
    return torch.fft.ifft2(spectrum.sqrt() * unit).real


def homogenize(
    v: Tensor, z: Tensor, sigma: float, settings: HomogenizeSettings, n: Tensor
) -> Tensor:
    """v~ = v + xi: white noise ``n``, shaped to fill the spectral gaps of v - z to sigma^2 H W."""
    missing = deficit(v - z, sigma, settings)
    return v + noise_with_power(missing, n, settings.sh_amplitude)
