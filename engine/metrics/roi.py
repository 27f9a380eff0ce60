"""What a person measures on an image: statistics of a region, and the profile along a line.

Positions are in mm from the centre of the image, x along a row, y along a column; ``pixel_mm``
is the spacing between rows and between columns, as DICOM orders it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Point = tuple[float, float]


@dataclass(frozen=True)
class RoiStatistics:
    """Of the finite pixels whose centre lies in the region.

    ``sd`` is that of the pixels themselves (divided by n); ``area_mm2`` is the area of all
    pixels of the region, finite or not, not that of the ideal shape.
    """

    mean: float
    sd: float
    minimum: float
    maximum: float
    area_mm2: float
    pixels: int
    not_finite: int = 0


@dataclass(frozen=True)
class LineProfile:
    """Values at equal steps along a line; not a number outside the image."""

    distance_mm: np.ndarray
    values: np.ndarray


def pixel_centres(
    shape: tuple[int, ...], pixel_mm: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """x of every column and y of every row, in mm from the centre of the image."""
    rows, columns = shape[-2:]
    x = (np.arange(columns) - (columns - 1) / 2) * pixel_mm[1]
    y = (np.arange(rows) - (rows - 1) / 2) * pixel_mm[0]
    return x, y


def region_mask(
    shape: tuple[int, ...],
    pixel_mm: tuple[float, float],
    box: tuple[float, float, float, float],
    ellipse: bool = False,
) -> np.ndarray:
    """Pixels whose centre lies in ``box`` (left, top, right, bottom), or in its ellipse."""
    left, top, right, bottom = box
    x, y = pixel_centres(shape, pixel_mm)
    if not ellipse:
        return ((y >= top) & (y <= bottom))[:, None] & ((x >= left) & (x <= right))[None, :]
    if right <= left or bottom <= top:
        return np.zeros(shape[-2:], dtype=bool)
    u = (x - (left + right) / 2) / ((right - left) / 2)
    v = (y - (top + bottom) / 2) / ((bottom - top) / 2)
    return u[None, :] ** 2 + v[:, None] ** 2 <= 1


def polygon_mask(
    shape: tuple[int, ...], pixel_mm: tuple[float, float], points: Sequence[Point]
) -> np.ndarray:
    """Pixels whose centre lies inside a closed outline, by the even-odd rule."""
    x, y = pixel_centres(shape, pixel_mm)
    inside = np.zeros(shape[-2:], dtype=bool)
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], *points[:1]], strict=True):
        rows = np.flatnonzero((y0 > y) != (y1 > y))
        if rows.size:  # beyond an edge what was inside is outside, and the other way round
            edge = x0 + (y[rows] - y0) / (y1 - y0) * (x1 - x0)
            inside[rows] ^= x[None, :] > edge[:, None]
    return inside


def roi_statistics(
    image: np.ndarray,
    pixel_mm: tuple[float, float],
    box: tuple[float, float, float, float],
    ellipse: bool = False,
) -> RoiStatistics | None:
    """Statistics of a region; None when no finite pixel lies in it."""
    return masked_statistics(image, pixel_mm, region_mask(image.shape, pixel_mm, box, ellipse))


def masked_statistics(
    image: np.ndarray, pixel_mm: tuple[float, float], mask: np.ndarray
) -> RoiStatistics | None:
    inside = image[mask]
    # float64: a float32 sum over a large region drifts by whole HU
    values = inside[np.isfinite(inside)].astype(np.float64)
    if not values.size:
        return None
    return RoiStatistics(
        mean=float(values.mean()),
        sd=float(values.std()),
        minimum=float(values.min()),
        maximum=float(values.max()),
        area_mm2=inside.size * pixel_mm[0] * pixel_mm[1],
        pixels=int(values.size),
        not_finite=int(inside.size - values.size),
    )


def line_profile(
    image: np.ndarray,
    pixel_mm: tuple[float, float],
    start: Point,
    end: Point,
    step_mm: float | None = None,
) -> LineProfile:
    """Bilinear samples from ``start`` to ``end``, by default half a pixel apart or less."""
    length = math.dist(start, end)
    step = step_mm or min(pixel_mm) / 2
    part = np.linspace(0.0, 1.0, math.ceil(length / step) + 1)
    rows, columns = image.shape
    column = (start[0] + part * (end[0] - start[0])) / pixel_mm[1] + (columns - 1) / 2
    row = (start[1] + part * (end[1] - start[1])) / pixel_mm[0] + (rows - 1) / 2
    # a pixel reaches half its size beyond its centre: there its own value holds
    outside = (np.abs(column - (columns - 1) / 2) > columns / 2) | (
        np.abs(row - (rows - 1) / 2) > rows / 2
    )
    values = _bilinear(image, np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1))
    values[outside] = np.nan
    return LineProfile(part * length, values)


def _bilinear(image: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    top, left = np.floor(row).astype(int), np.floor(column).astype(int)
    bottom = np.minimum(top + 1, image.shape[0] - 1)
    right = np.minimum(left + 1, image.shape[1] - 1)
    down, across = row - top, column - left
    pixels = image.astype(np.float64, copy=False)
    # a NaN neighbour of weight zero must not spread: take it only where it counts
    upper = _mix(pixels[top, left], pixels[top, right], across)
    lower = _mix(pixels[bottom, left], pixels[bottom, right], across)
    return _mix(upper, lower, down)


def _mix(a: np.ndarray, b: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.where(weight > 0, a * (1 - weight) + b * weight, a)
