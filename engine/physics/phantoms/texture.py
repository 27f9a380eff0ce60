"""Random fields and trees: what keeps a phantom from looking like a cartoon.

Fields are drawn as Fourier coefficients on a grid that depends on their finest detail only and are
then evaluated at the image size, so the same seed gives the same texture at every size, less the
detail that the coarser pixels cannot hold.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
import scipy.fft

from engine.physics.phantoms.shapes import Array


def stream(seed: int, name: str) -> np.random.Generator:
    """An independent generator per structure: changing one leaves the others as they were."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def field(
    rng: np.random.Generator,
    size: int,
    fov_mm: float,
    fine_mm: float,
    coarse_mm: float = 1e9,
    power: float = 0.0,
) -> Array:
    """A random field of unit variance with power spectrum f^-power in a band.

    `fine_mm` and `coarse_mm` are the wavelengths where the band rolls off.
    """
    gain = _gain(fov_mm, fine_mm, coarse_mm, power)
    grid, half = gain.shape
    noise = rng.standard_normal((grid, half, 2), dtype=np.float32)
    spectrum = noise.view(np.complex64)[..., 0] * gain
    keep = min(half, size // 2)
    # the mean over each pixel: a box filter, evaluated at the centres, half a pixel off the origin
    k = np.fft.fftfreq(grid, 1 / grid) / size
    pixel = (np.sinc(k) * np.exp(1j * np.pi * k)).astype(np.complex64)
    spectrum *= pixel[:, None]
    spectrum *= pixel[None, :half]
    resized = np.zeros((size, size // 2 + 1), dtype=np.complex64)
    resized[:keep, :keep] = spectrum[:keep, :keep]
    resized[-keep:, :keep] = spectrum[-keep:, :keep]
    return scipy.fft.irfft2(resized, s=(size, size), norm="forward").astype(np.float32)


@lru_cache(maxsize=64)
def _gain(fov_mm: float, fine_mm: float, coarse_mm: float, power: float) -> Array:
    """Amplitudes of the Fourier coefficients with kx >= 0, on a grid fine enough for the band."""
    grid = 32
    while grid < 1024 and fov_mm / grid > fine_mm / 2.2:
        grid *= 2
    k = np.fft.fftfreq(grid, fov_mm / grid)
    f = np.hypot(k[:, None], k[None, : grid // 2])
    f[0, 0] = 1.0
    gain = f ** (-power / 2) * np.exp(-0.5 * (f * fine_mm) ** 4 - 0.5 / (f * coarse_mm) ** 4)
    gain[0, 0] = 0.0
    # columns with kx > 0 stand for two conjugate coefficients each
    variance = 2 * (2 * np.sum(gain[:, 1:] ** 2) + np.sum(gain[:, 0] ** 2))
    gain = (gain / np.sqrt(variance)).astype(np.float32)
    gain.setflags(write=False)
    return gain


def branches(
    rng: np.random.Generator,
    root: tuple[float, float],
    heading_rad: float,
    radius_mm: float,
    length_mm: float,
    thinnest_mm: float,
    spread_rad: float = 0.55,
    shrink: float = 0.78,
    loss: float = 0.12,
) -> list[tuple[Array, Array, float]]:
    """A branching tree as (centre line, widths, weight); the weight is a partial volume.

    A slice shows only pieces of a three-dimensional tree: a branch may leave the plane (`loss`).
    """
    found: list[tuple[Array, Array, float]] = []
    todo = [(np.asarray(root, dtype=np.float64), heading_rad, radius_mm, length_mm, 1.0)]
    while todo:
        start, heading, radius, length, weight = todo.pop()
        bend = rng.normal(0, 0.25)
        steps = np.arange(5) / 4
        angles = heading + bend * steps
        step = length / 4 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        line = start + np.concatenate([np.zeros((1, 2)), np.cumsum(step[:-1], axis=0)])
        thinner = radius * shrink
        found.append((line, 2 * np.linspace(radius, thinner, 5), weight))
        if thinner < thinnest_mm:
            continue
        side = rng.choice([-1.0, 1.0])
        for turn, ratio in ((side * 0.35, 0.97), (-side * 1.0, rng.uniform(0.55, 0.85))):
            if rng.random() < loss:
                continue
            new_heading = angles[-1] + spread_rad * turn * rng.uniform(0.6, 1.4)
            new_length = length * rng.uniform(0.65, 1.0) * ratio**0.3
            new_weight = weight * rng.uniform(0.75, 1.0)
            todo.append((line[-1], new_heading, thinner * ratio, new_length, new_weight))
    return found
