"""The sum of filtered back-projection in compiled loops, in the memory of the images alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.physics import ray_kernels
from engine.physics.fbp import by_views_that_see
from engine.physics.geometry import CTGeometry

ROWS_AT_ONCE: Final = 16  # of an image: they stay in the cache


def compiled_sum(filtered: Tensor, geometry: CTGeometry) -> Tensor:
    """`engine.physics.fbp.back_project` in compiled loops, with no memory but the images'."""
    loop, places = ray_kernels.back_projection(), _places_of_pixels(geometry)
    views = functional.pad(filtered[:, 0], (1, 2)).contiguous().numpy()
    images = np.zeros((len(views), *geometry.image_size), dtype=np.float32)
    missed = np.zeros(images.shape, dtype=np.float32)
    rows = geometry.image_size[0]
    pieces = -(-rows // ROWS_AT_ONCE)

    def act(i: int) -> None:
        image, part = divmod(i, pieces)
        low, high = part * ROWS_AT_ONCE, min((part + 1) * ROWS_AT_ONCE, rows)
        parallel = geometry.kind == "parallel"
        loop(views[image], places, parallel, images[image], missed[image], low, high)

    ray_kernels.in_threads(act, len(views) * pieces, torch.get_num_threads())
    seen = geometry.views - torch.from_numpy(missed)
    return by_views_that_see(torch.from_numpy(images), seen, geometry.views)[:, None]


def _places_of_pixels(geometry: CTGeometry) -> NDArray[np.float64]:
    """The six numbers per view of `ray_kernels.back_project_rows`."""
    (x, y), step = geometry.pixel_axes_mm(), geometry.pixel_mm
    cos, sin = np.cos(geometry.angles_rad), np.sin(geometry.angles_rad)
    middle = (geometry.detectors - 1) / 2 - geometry.detector_offset_mm / geometry.pitch_mm
    far = np.stack([np.ones_like(cos), np.zeros_like(cos), np.zeros_like(cos)], axis=1)
    if geometry.source_origin_mm is not None:
        lean = np.stack([y[0] * cos - x[0] * sin, -step * sin, -step * cos], axis=1)
        far += lean / geometry.source_origin_mm
    along = np.stack([x[0] * cos + y[0] * sin, step * cos, -step * sin], axis=1)
    return np.hstack([along * geometry.magnification / geometry.pitch_mm + far * middle, far])
