"""What every solver measures of its own iterations, and the checks that stop a bad one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.solvers.homogenize import power
from engine.solvers.iteration import Iteration
from engine.spec.errors import StepFailed

# Values this many times larger than the first image are divergence, not contrast.
DIVERGENCE_FACTOR = 1e4


def norms(x: Tensor) -> Tensor:
    """Per-sample Euclidean norm."""
    return x.flatten(1).norm(dim=1)


class Stopwatch:
    """Seconds by name, waiting for the device so that the numbers are honest."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: dict[str, float] = {}

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()
        return time.perf_counter()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = self._now()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + self._now() - start


class Guard:
    """Stops a run whose step gave NaN, infinity or absurd values, and names the step."""

    def __init__(self, start: Tensor) -> None:
        self.limit = DIVERGENCE_FACTOR * start.abs().max().clamp_min(1.0)

    def check(self, k: int, **steps: Tensor) -> None:
        """One wait for the device, whatever the number of steps."""
        peaks = torch.stack([image.abs().max() for image in steps.values()])
        good = torch.stack([torch.isfinite(peaks), peaks <= self.limit]).tolist()
        for name, finite, bounded in zip(steps, *good, strict=True):
            if not finite:
                raise StepFailed(name.replace("_", " "), k, "produced NaN or infinity")
            if not bounded:
                raise StepFailed(name.replace("_", " "), k, "diverged")


@lru_cache(maxsize=8)
def _radial_bins(height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """For every DFT bin its ring (whole cycles over the shorter side), and the ring sizes."""
    side = min(height, width)
    fy = torch.fft.fftfreq(height, device=device)[:, None]
    fx = torch.fft.fftfreq(width, device=device)[None, :]
    ring = ((fy**2 + fx**2).sqrt() * side).round().long().clamp_max(side // 2).flatten()
    return ring, torch.bincount(ring, minlength=side // 2 + 1)


def radial_profile(spectrum: Tensor) -> Tensor:
    """Mean power on rings of equal frequency: ``[B, C, H, W]`` -> ``[B, C, R]``.

    The last ring also holds the corners beyond the Nyquist frequency.
    """
    height, width = spectrum.shape[-2:]
    ring, count = _radial_bins(height, width, spectrum.device)
    sums = spectrum.new_zeros(*spectrum.shape[:2], len(count))
    sums.index_add_(2, ring, spectrum.flatten(2))
    return sums / count


def psd_curves(v: Tensor, v_tilde: Tensor, z: Tensor, sigma: float) -> dict[str, Tensor]:
    """Radial power of the residual before and after injection, and the white target."""
    residual = radial_profile(power(v - z))
    target = torch.full_like(residual, sigma**2 * v.shape[-2] * v.shape[-1])
    homogenized = radial_profile(power(v_tilde - z))
    return {"residual": residual, "homogenized": homogenized, "target": target}


def sampling_iteration(
    problem: Problem,
    *,
    k: int,
    total: int,
    sigma: float,
    z: Tensor,
    x: Tensor,
    state: dict[str, Tensor],
    seconds: dict[str, float],
    nfe: int,
    v: Tensor,
    v_tilde: Tensor,
    centre: Tensor,
) -> Iteration:
    """An Iteration of a method without dual that answers with the data-consistent image.

    ``v_tilde`` is what the denoiser saw, ``v`` the same before noise was added (or ``v_tilde``
    itself where that is all noise), both seen as deviations from ``centre``.
    """
    noise = {"residual": v - centre}
    if v is not v_tilde:
        noise["homogenized"] = v_tilde - centre
    return Iteration(
        k=k,
        K=total,
        sigma=sigma,
        z=z,
        x=x,
        image=x,
        residual_x=norms(problem.residual(x)),
        residual_z=norms(problem.residual(z)),
        gap=norms(x - z),
        dual=torch.zeros_like(norms(z)),
        state=state,
        psd=psd_curves(v, v_tilde, centre, sigma),
        noise=noise,
        seconds=seconds,
        nfe=nfe,
    )
