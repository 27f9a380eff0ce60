"""Ellipses whose image and whose line integrals are both known, for the CT tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.physics.geometry import CTGeometry


@dataclass(frozen=True)
class Ellipse:
    """In mm relative to the image centre, y upwards; ``turn_rad`` counter-clockwise."""

    x: float
    y: float
    a: float
    b: float
    turn_rad: float = 0.0
    value: float = 1.0


def raster(
    ellipses: Sequence[Ellipse], size: tuple[int, int], pixel_mm: float, sub: int = 8
) -> NDArray[np.float64]:
    """The mean over every pixel, from ``sub * sub`` samples."""
    rows, columns = size
    x = ((np.arange(columns * sub) + 0.5) / sub - columns / 2) * pixel_mm
    y = (rows / 2 - (np.arange(rows * sub) + 0.5) / sub) * pixel_mm
    fine = sum(e.value * _inside(e, x[None, :], y[:, None]) for e in ellipses)
    return np.asarray(fine).reshape(rows, sub, columns, sub).mean(axis=(1, 3))


def _inside(e: Ellipse, x: NDArray, y: NDArray) -> NDArray[np.bool_]:
    cos, sin = np.cos(e.turn_rad), np.sin(e.turn_rad)
    along = (x - e.x) * cos + (y - e.y) * sin
    across = (y - e.y) * cos - (x - e.x) * sin
    return (along / e.a) ** 2 + (across / e.b) ** 2 <= 1


def line_integrals(ellipses: Sequence[Ellipse], geometry: CTGeometry) -> NDArray[np.float64]:
    """The exact sinogram: 2 a b sqrt(w^2 - s^2) / w^2, w the half width seen from the angle."""
    angle = np.array(geometry.angles_rad)[:, None]
    s = geometry.detector_mm()[None, :]
    if geometry.kind == "fan":
        gamma = np.arctan2(s, geometry.source_detector_mm)
        angle, s = angle - gamma, geometry.source_origin_mm * np.sin(gamma)
    cx, cy = geometry.centre_offset_mm
    total = np.zeros((geometry.views, geometry.detectors))
    for e in ellipses:
        offset = s - (e.x - cx) * np.cos(angle) - (e.y - cy) * np.sin(angle)
        width2 = (e.a * np.cos(angle - e.turn_rad)) ** 2 + (e.b * np.sin(angle - e.turn_rad)) ** 2
        chord = np.sqrt(np.maximum(width2 - offset**2, 0.0))
        total += e.value * 2 * e.a * e.b * chord / width2
    return total


def head(scale_mm: float) -> list[Ellipse]:
    """A soft little phantom: no thin shell, moderate contrast."""
    parts = [
        (0.0, 0.0, 0.72, 0.9, 0.0, 1.0),
        (0.25, 0.15, 0.16, 0.32, -0.4, -0.2),
        (-0.25, 0.1, 0.2, 0.36, 0.35, -0.25),
        (0.05, 0.5, 0.2, 0.16, 0.0, 0.3),
        (0.0, -0.45, 0.12, 0.08, 0.2, 0.25),
    ]
    lengths = [[p * scale_mm for p in part[:4]] for part in parts]
    return [
        Ellipse(*length, turn_rad=part[4], value=part[5])
        for length, part in zip(lengths, parts, strict=True)
    ]
