"""Changes to a training image that leave its anatomy plausible."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


def warp(
    x: Tensor, turn_deg: float, zoom: float, rng: np.random.Generator, outside: float | None = None
) -> Tensor:
    """Turn and scale ``[C, H, W]`` about its centre by random amounts within the limits.

    Scales lie between 1 / (1 + zoom) and 1 + zoom. Beyond the image is ``outside``, or what is
    at its border. Cubic interpolation, because a linear one smooths the grain that a denoiser
    learns from.
    """
    angle = math.radians(rng.uniform(-turn_deg, turn_deg))
    factor = (1 + zoom) ** -rng.uniform(-1, 1)
    cos, sin = factor * math.cos(angle), factor * math.sin(angle)
    matrix = torch.tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]])
    grid = F.affine_grid(matrix, [1, *x.shape], align_corners=False)
    level, beyond = (0.0, "border") if outside is None else (outside, "zeros")
    moved = (
        level
        + F.grid_sample(
            (x - level)[None], grid, mode="bicubic", padding_mode=beyond, align_corners=False
        )[0]
    )
    # overshoot of the cubic at edges would be values no scanner gives
    lowest = float(x.min()) if outside is None else min(outside, float(x.min()))
    return moved.clamp(lowest, float(x.max()))


def random_phase(height: int, width: int, rng: np.random.Generator) -> Tensor:
    """cos and sin of a smooth random phase, ``[2, H, W]``.

    A random constant, a second-order polynomial (shifted echo, field inhomogeneity) and a few
    waves of up to three periods across the image.
    """
    v = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    u = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    phase = np.full((height, width), rng.uniform(0, 2 * math.pi), np.float32)
    strength = rng.uniform(0, 1.5)
    for term in (u, v, u * v, u * u, v * v):
        phase += np.float32(strength * rng.normal()) * term
    strength = rng.uniform(0, 0.6)
    for _ in range(4):
        ku, kv = rng.uniform(-3, 3, 2) * math.pi
        shift = rng.uniform(0, 2 * math.pi)
        phase += np.float32(strength * rng.normal() / 2) * np.cos(
            np.float32(ku) * u + np.float32(kv) * v + np.float32(shift)
        )
    return torch.from_numpy(np.stack([np.cos(phase), np.sin(phase)]))


def other_contrast(x: Tensor, rng: np.random.Generator) -> Tensor:
    """A magnitude image ``[1, H, W]`` as another sequence and another coil might show it.

    A tone curve that is 0 at 0 and near 1 at 1, and a smooth field of sensitivity.
    """
    knots = np.linspace(0, 1, 6)
    curve = knots ** math.exp(rng.uniform(-0.35, 0.35)) + 0.06 * rng.standard_normal(6)
    curve = np.maximum.accumulate(np.maximum(curve, 0))
    curve[0] = 0.0
    values = x.numpy()
    toned = np.interp(values, knots, curve) + np.maximum(values - 1, 0)  # brighter than 1 stays
    height, width = x.shape[-2:]
    v, u = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None]
    a, b, c, d, e = rng.uniform(0, 0.2) * rng.standard_normal(5)
    field = np.exp(a * u + b * v + c * u * v + d * (u * u - 0.3) + e * (v * v - 0.3))
    return torch.from_numpy((toned * field).astype(np.float32))


def local_field(height: int, width: int, rng: np.random.Generator) -> Tensor:
    """cos and sin of a phase that winds around one spot, as near air in bone; ``[2, H, W]``."""
    v = np.linspace(-1, 1, height, dtype=np.float32)[:, None] - np.float32(rng.uniform(-0.6, 0.6))
    u = np.linspace(-1, 1, width, dtype=np.float32)[None] - np.float32(rng.uniform(-0.6, 0.6))
    size = np.float32(rng.uniform(0.1, 0.35))
    phase = np.float32(rng.uniform(-3, 3)) * np.exp(-(u * u + v * v) / size**2)
    return torch.from_numpy(np.stack([np.cos(phase), np.sin(phase)]))
