"""Smooth synthetic coil sensitivities for tests and demonstrations."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.spec.errors import RequestError


def birdcage_maps(
    coils: int,
    height: int,
    width: int,
    *,
    relative_radius: float = 1.5,
    fine: int = 1,
    dtype: torch.dtype = torch.complex64,
) -> Tensor:
    """Sensitivities ``[coils, H, W]`` of loops on a ring, normalised to sum |S|^2 = 1.

    Each coil sits at an equal angle on a ring around the image, in units of half its side. Its
    strength falls with distance and its phase turns with the direction to the coil, as the
    transverse field of a loop does. ``fine`` parts every pixel into so many in both directions.
    """
    if coils < 1 or height < 1 or width < 1:
        raise RequestError(
            f"Coil maps need at least one coil and one pixel, not {coils} x {height} x {width}."
        )
    if not relative_radius > 1:
        # A coil inside the image would put a singularity on a pixel.
        raise RequestError(f"The coil ring must lie outside the image, not at {relative_radius}.")
    angle = 2 * math.pi * torch.arange(coils, dtype=torch.float64)[:, None, None] / coils
    y = _centred(height, fine)[None, :, None]
    x = _centred(width, fine)[None, None, :]
    # The corners of the square are at sqrt(2); the ring must clear them.
    radius = relative_radius * math.sqrt(2)
    dx = x - radius * torch.cos(angle)
    dy = y - radius * torch.sin(angle)
    maps = torch.polar(1 / torch.hypot(dx, dy), torch.atan2(dx, -dy))
    return (maps / maps.abs().square().sum(dim=0).sqrt()).to(dtype)


def _centred(n: int, fine: int) -> Tensor:
    places = (torch.arange(n * fine, dtype=torch.float64) + 0.5) / fine - 0.5
    return (places - (n - 1) / 2) / max((n - 1) / 2, 1)
