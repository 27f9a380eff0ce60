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


# What CT scanners and patients add to a slice: tables, arms, implants, contrast, a round field.
#
# Drawn into ``[H, W]`` images in units of 1000 HU. What is drawn lies in the air around the body
# (tables, arms) or inside it (implants, contrast); the anatomy stays where it was.

AIR = -1.0
BODY = -0.4  # all that is denser counts as body (or as a table that was there)
AIR_AROUND = -0.6


def scanned(x: Tensor, rng: np.random.Generator) -> Tensor:
    """A slice ``[1, H, W]`` with some of these changes, each by chance."""
    image = x[0]
    for change, chance in (
        (add_contrast, 0.3),
        (add_implants, 0.15),
        (add_arms, 0.3),
        (add_table, 0.6),
        (truncate, 0.3),
    ):
        if rng.random() < chance:
            image = change(image, rng)
    return image[None]


def coordinates(image: Tensor) -> tuple[Tensor, Tensor]:
    """Rows ``[H, 1]`` and columns ``[1, W]`` in pixels."""
    height, width = image.shape
    return torch.arange(height)[:, None].float(), torch.arange(width)[None].float()


def add_table(image: Tensor, rng: np.random.Generator) -> Tensor:
    """A curved shell, hollow or filled with foam, below the body."""
    height, width = image.shape
    rows, columns = coordinates(image)
    body = image > BODY
    found = body.any(1).nonzero()
    lowest = int(found[-1]) if len(found) else height // 2
    top = lowest + rng.uniform(-8, 10)
    if top > height - 4:
        return image
    middle, half = width * rng.uniform(0.45, 0.55), width * rng.uniform(0.25, 0.7)
    u = (columns - middle) / half
    upper = top - height * rng.uniform(-0.02, 0.2) * u**2
    thickness = height * rng.uniform(0.02, 0.16) * (1 - u**2 * rng.uniform(0, 1)).clamp_min(0)
    lower = upper + thickness
    wall, dense, foam = rng.uniform(0.6, 3), rng.uniform(-0.6, 0.4), rng.uniform(-1, -0.75)
    # how far inside the table a pixel is; half a pixel of soft edge on either side
    inside = torch.minimum(torch.minimum(rows - upper, lower - rows), (1 - u.abs()) * half)
    outer = (inside + 0.5).clamp(0, 1)
    hollow = (inside - wall + 0.5).clamp(0, 1)
    table = AIR + (dense - AIR) * (outer - hollow) + (foam - AIR) * hollow
    # only below the last body pixel of each column, where there is air
    below = body.flip(0).cumsum(0).flip(0) == 0
    return torch.where(below & (image < AIR_AROUND), torch.maximum(image, table), image)


def add_arms(image: Tensor, rng: np.random.Generator) -> Tensor:
    """One or two arms beside the body: skin and fat, muscle, bone."""
    height, width = image.shape
    sides = np.flatnonzero((image > BODY).any(0).numpy())
    if not len(sides):
        return image
    rows, columns = coordinates(image)
    grain = 0.01 * rng.uniform(0.3, 1.5)
    for side in (-1, 1):
        if rng.random() < 0.25:
            continue
        radius = width * rng.uniform(0.05, 0.1)
        edge = sides[0] if side < 0 else sides[-1]
        x0 = edge + side * (radius + rng.uniform(-2, 8))
        y0 = height * rng.uniform(0.35, 0.75)
        slant, stretch = rng.uniform(-0.5, 0.5), rng.uniform(0.8, 1.3)
        du, dv = (columns - x0) + slant * (rows - y0), (rows - y0) / stretch
        depth = radius - (du**2 + dv**2).sqrt()
        bone = radius * rng.uniform(0.2, 0.4) - ((du - radius * 0.1) ** 2 + dv**2).sqrt()
        arm = AIR + (rng.uniform(-0.12, -0.06) - AIR) * (depth + 0.5).clamp(0, 1)
        layers = (
            (depth - radius * rng.uniform(0.1, 0.35), rng.uniform(0.03, 0.08)),
            (bone, rng.uniform(0.5, 1.3)),
            (bone - radius * 0.12, rng.uniform(-0.05, 0.3)),
        )
        for inside, value in layers:
            arm = torch.lerp(arm, torch.tensor(value).float(), (inside + 0.5).clamp(0, 1))
        noise = torch.from_numpy(rng.standard_normal((height, width), dtype=np.float32))
        arm = arm + grain * noise * (depth > 0)
        image = torch.where(image < AIR_AROUND, torch.maximum(image, arm), image)
    return image


def add_implants(image: Tensor, rng: np.random.Generator) -> Tensor:
    """A few pieces of metal in the body: screws, clips, electrodes."""
    places = (image > BODY).nonzero()
    if not len(places):
        return image
    rows, columns = coordinates(image)
    for _ in range(rng.integers(1, 5)):
        y0, x0 = places[rng.integers(len(places))].tolist()
        angle, long, short = rng.uniform(0, np.pi), rng.uniform(1, 12), rng.uniform(0.6, 3)
        u = (columns - x0) * np.cos(angle) + (rows - y0) * np.sin(angle)
        v = (rows - y0) * np.cos(angle) - (columns - x0) * np.sin(angle)
        inside = torch.minimum(long - u.abs(), short - v.abs())
        metal = torch.tensor(rng.uniform(1.2, 3.0)).float()
        image = torch.lerp(image, metal, (inside + 0.5).clamp(0, 1))
    return image


def add_contrast(image: Tensor, rng: np.random.Generator) -> Tensor:
    """Blood and organs of a region enhanced by up to 300 HU."""
    height, width = image.shape
    rows, columns = coordinates(image)
    region = torch.zeros_like(image)
    for _ in range(rng.integers(1, 4)):
        y0, x0 = height * rng.uniform(0.25, 0.75), width * rng.uniform(0.25, 0.75)
        size = width * rng.uniform(0.04, 0.25)
        region += torch.exp(-((rows - y0) ** 2 + (columns - x0) ** 2) / size**2)
    # soft tissue: neither fat nor bone
    tissue = (image / 0.03).clamp(0, 1) * ((0.18 - image) / 0.05).clamp(0, 1)
    return image + rng.uniform(0.03, 0.3) * region.clamp_max(1) * tissue


def truncate(image: Tensor, rng: np.random.Generator) -> Tensor:
    """Air outside a round field of view, which may cut the body."""
    height, width = image.shape
    rows, columns = coordinates(image)
    y0, x0 = height * rng.uniform(0.47, 0.53), width * rng.uniform(0.47, 0.53)
    radius = width * rng.uniform(0.36, 0.52)
    beyond = ((rows - y0) ** 2 + (columns - x0) ** 2).sqrt() - radius
    return torch.lerp(image, torch.tensor(AIR), (beyond + 0.5).clamp(0, 1))


def add_grain(x: Tensor, most: float, rng: np.random.Generator) -> Tensor:
    """Noise of a random reconstruction kernel, of a standard deviation up to ``most``.

    Smooth, white or sharp, and only mild: a denoiser takes it for part of the image.
    """
    white = torch.from_numpy(rng.standard_normal(x.shape, dtype=np.float32))
    taps = torch.tensor([0.25, 0.5, 0.25])
    smooth = F.conv2d(white[:, None], (taps[:, None] * taps)[None, None], padding=1)[:, 0]
    grain = torch.lerp(white, smooth, float(rng.uniform(-0.5, 1.2)))
    return x + grain * (rng.uniform(0, most) / grain.std())
