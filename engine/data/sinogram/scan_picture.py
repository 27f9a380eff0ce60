"""The sinogram that a simulated scan would give, coarse enough to be drawn while one types."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from engine.physics.geometry import CTGeometry
from engine.physics.noise import gaussian, poisson_line_integrals
from engine.physics.projection import project
from engine.physics.random import MEASUREMENT, make_generator
from engine.physics.simulate import ct_geometry
from engine.physics.units import MU_WATER_PER_MM
from engine.spec.acquisition import CTAcquisition

SIDE = 128  # pixels of the image that is projected
VIEWS = 360  # views that are projected; more are copies of their neighbours
BINS = 1024  # of the picture


def scan_picture(
    image_hu: NDArray, pixel_mm: float, acquisition: CTAcquisition, seed: int = 0, number: int = 0
) -> NDArray[np.float32]:
    """Line integrals ``[views, detectors]`` of a slice, noise included; for the eye only."""
    rows, columns = image_hu.shape
    full = ct_geometry(acquisition, (rows, columns), pixel_mm)
    factor = math.ceil(max(rows, columns) / SIDE)
    coarse = block_mean(image_hu, factor)
    mu = (MU_WATER_PER_MM * (1 + coarse / 1000)).astype(np.float32)
    bins = min(full.detectors, 3 * SIDE // 2)
    geometry = replace(
        full,
        image_size=coarse.shape,
        pixel_mm=pixel_mm * factor,
        detectors=bins,
        pitch_mm=full.pitch_mm * full.detectors / bins,
    )
    y = _projected(mu, geometry)
    y = _stretched(y, min(full.detectors, BINS))
    return _noisy(y, acquisition, seed, number)


def block_mean(image: NDArray, factor: int) -> NDArray[np.float32]:
    """Blocks of ``factor`` x ``factor`` pixels averaged; what is left over at the edges is cut."""
    rows, columns = (max(1, side // factor) for side in image.shape)
    down, right = min(factor, image.shape[0]), min(factor, image.shape[1])
    top, left = (image.shape[0] - rows * down) // 2, (image.shape[1] - columns * right) // 2
    inner = image[top : top + rows * down, left : left + columns * right]
    blocks = inner.reshape(rows, down, columns, right)
    return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float32))


def _projected(mu: NDArray[np.float32], geometry: CTGeometry) -> NDArray[np.float32]:
    views = min(geometry.views, VIEWS)
    nearest = np.arange(geometry.views) * views // geometry.views
    first = np.searchsorted(nearest, np.arange(views))  # the view that stands for its copies
    angles = np.array(geometry.angles_rad)[first]
    part = replace(geometry, angles_rad=tuple(angles))
    return project(torch.from_numpy(mu)[None, None], part)[0, 0].numpy()[nearest]


def _stretched(y: NDArray[np.float32], bins: int) -> NDArray[np.float32]:
    if bins == y.shape[1]:
        return y
    centres = (np.arange(bins) + 0.5) * (y.shape[1] / bins) - 0.5
    low = np.clip(np.floor(centres).astype(np.intp), 0, max(0, y.shape[1] - 2))
    share = np.clip(centres - low, 0, 1).astype(np.float32)
    high = np.minimum(low + 1, y.shape[1] - 1)
    return (1 - share) * y[:, low] + share * y[:, high]


def _noisy(
    y: NDArray[np.float32], acquisition: CTAcquisition, seed: int, number: int
) -> NDArray[np.float32]:
    generator = make_generator(seed, stream=MEASUREMENT + number)
    clean = torch.from_numpy(np.ascontiguousarray(y, dtype=np.float32))
    if acquisition.photons is not None:
        noisy = poisson_line_integrals(
            clean, acquisition.photons, acquisition.electronic_noise, generator
        )
        return noisy.line_integrals.numpy()
    if acquisition.gaussian_noise > 0:
        return gaussian(clean, acquisition.gaussian_noise, generator).numpy()
    return clean.numpy()
