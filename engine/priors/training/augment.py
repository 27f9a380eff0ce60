"""Changes to a training image that leave its anatomy plausible."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


def warp(x: Tensor, turn_deg: float, zoom: float, rng: np.random.Generator) -> Tensor:
    """Turn and scale ``[C, H, W]`` about its centre by random amounts within the limits.

    Cubic interpolation, because a linear one smooths the grain that a denoiser learns from.
    """
    angle = math.radians(rng.uniform(-turn_deg, turn_deg))
    factor = 1 / (1 + rng.uniform(-zoom, zoom))
    cos, sin = factor * math.cos(angle), factor * math.sin(angle)
    matrix = torch.tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]])
    grid = F.affine_grid(matrix, [1, *x.shape], align_corners=False)
    moved = F.grid_sample(
        x[None], grid, mode="bicubic", padding_mode="border", align_corners=False
    )[0]
    # overshoot of the cubic at edges would be values no scanner gives
    return moved.clamp(x.min(), x.max())


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
