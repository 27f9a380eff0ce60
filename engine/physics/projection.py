"""Line integrals without a system matrix, for images that are projected once.

The weights are those of `engine.physics.system_matrix`, computed view by view and forgotten, so
that the memory is that of a view.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.physics.geometry import CTGeometry
from engine.physics.system_matrix import Rays, runs

PLACES_AT_ONCE = 2**16  # in the cache of a processor


def project(x: Tensor, geometry: CTGeometry) -> Tensor:
    """A x of images ``[B, 1, H, W]``."""
    # One empty line of pixels before each end, and two behind it for the upper neighbour.
    along_rows = functional.pad(x[:, 0], (1, 2))
    along_columns = functional.pad(x[:, 0].mT, (1, 2)).contiguous()
    views = []
    for view in range(geometry.views):
        parts = [
            _walk(along_rows if rays.across_stride == 1 else along_columns, rays)
            for rays in runs(geometry, view)
        ]
        views.append(torch.cat(parts, dim=1))
    return torch.stack(views, dim=1)[:, None]


def _walk(lines: Tensor, rays: Rays) -> Tensor:
    """Integrals ``[B, rays]`` through ``lines [B, steps, across + 3]``."""
    start, slope, length = (
        torch.from_numpy(values).to(lines.device)
        for values in (rays.start, rays.slope, rays.length_mm)
    )
    flat = lines.reshape(len(lines), -1)
    total = torch.zeros(len(lines), len(start), dtype=lines.dtype, device=lines.device)
    at_once = max(1, PLACES_AT_ONCE // len(start))
    for first in range(0, rays.steps, at_once):
        step = torch.arange(first, min(first + at_once, rays.steps), device=lines.device)[:, None]
        # 0 and across + 1 are the empty pixels
        place = (slope * step + (start + 1)).clamp_(0, rays.across + 1)
        index = place.long()
        share = (place - index).to(lines.dtype)
        index += step * lines.shape[-1]
        for image, sums in zip(flat, total, strict=True):
            below = image[index]
            sums += (below + share * (image[index + 1] - below)).sum(0)
    return total * length.to(lines.dtype)


def ray_lengths(geometry: CTGeometry) -> NDArray[np.float64]:
    """A 1: the length of each ray inside the image ``[views, detectors]``, in closed form.

    On a line of pixels at distance p from the first, the two weights add up to 1 inside and fall
    to 0 over one pixel at either end: (p + 1)_+ - (p)_+ - (p - n + 1)_+ + (p - n)_+.
    """
    views = []
    for view in range(geometry.views):
        parts = []
        for rays in runs(geometry, view):
            ends = ((1, 1.0), (0, -1.0), (1 - rays.across, -1.0), (-rays.across, 1.0))
            inside = sum(sign * _positive_sum(rays, shift) for shift, sign in ends)
            parts.append(inside * rays.length_mm)
        views.append(np.concatenate(parts))
    return np.stack(views)


def _positive_sum(rays: Rays, shift: float) -> NDArray[np.float64]:
    """The sum over the steps k of (start + shift + slope k)_+, an arithmetic series."""
    last = rays.steps - 1
    falling = rays.slope < 0  # walked backwards, it rises
    slope = np.abs(rays.slope)
    first = rays.start + shift + np.where(falling, rays.slope * last, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        begin = np.where(slope > 0, np.floor(-first / slope) + 1, np.where(first > 0, 0, last + 1))
    begin = np.clip(begin, 0, last + 1)
    count = last + 1 - begin
    return np.asarray(count * (first + slope * (begin + last) / 2))
