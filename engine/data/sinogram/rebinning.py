"""From the rays of a clinical scanner to those of a 2-D fan with a flat detector.

A multi-row scanner measures a cone of rays, from a source that may be deflected (flying focal
spot) to a detector bent around the undeflected source, while the table may move. Here every ray
is described by the flat fan ray it stands for, and the samples are interpolated to that fan:

- along the detector, from the columns to bins that are equally wide on a flat detector;
- across it, to the row whose ray meets the slice where it passes nearest to the rotation axis
  (single-slice rebinning: F. Noo, M. Defrise, R. Clackdoyle, Phys. Med. Biol. 44 (1999) 561);
- in angle, to views that are equally spaced.

The frame turns with the view: at angle phi = 0 the undeflected source is at (0, R) and its
central ray goes down. A source at angle phi is at R (-sin phi, cos phi), and its ray at fan
angle gamma goes in the direction (sin(phi + gamma), -cos(phi + gamma)): columns rise with gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TINY = 1e-6  # of a detector column: positions this close are the same


@dataclass(frozen=True)
class Detector:
    """The detector and where its focal centre, the place of an undeflected source, is.

    ``central_column`` and ``central_row`` count from 1 and name the point that the line from
    the focal centre through the rotation axis hits; whole numbers are centres of elements.
    Row 1 has the largest z.
    """

    rows: int
    columns: int
    row_mm: float
    column_mm: float
    central_row: float
    central_column: float
    radius_mm: float  # focal centre to rotation axis
    distance_mm: float  # focal centre to detector
    flat: bool = False

    def positions_mm(self) -> Floats:
        """Of the columns along the detector, from the central one."""
        return (np.arange(1.0, self.columns + 1) - self.central_column) * self.column_mm

    @property
    def slice_mm(self) -> float:
        """Height of a row where the rotation axis is."""
        return self.row_mm * self.radius_mm / self.distance_mm

    @property
    def half_height_mm(self) -> float:
        """The longer way from the central row to the outer edge of the last one."""
        return max(self.central_row - 0.5, self.rows + 0.5 - self.central_row) * self.row_mm


@dataclass(frozen=True)
class Rays:
    """One ray per column or bin, as the fan ray it is seen from above.

    Attributes
    ----------
    u_mm : where the fan ray meets the flat detector
    column : number of the detector column, from 0; fractional between two of them
    lag_rad : angle of the fan's source minus that of the detector
    middle : where the ray is nearest to the axis: 0 at the source, 1 at the detector
    length_mm : from the source to the detector, seen from above
    """

    u_mm: Floats
    column: Floats
    lag_rad: Floats
    middle: Floats
    length_mm: Floats


def column_rays(detector: Detector, dphi_rad: float = 0.0, drho_mm: float = 0.0) -> Rays:
    """The rays to every column from a source deflected by an angle and in radius."""
    radius, distance = detector.radius_mm, detector.distance_mm
    rho = radius + drho_mm
    source = np.array([-rho * math.sin(dphi_rad), rho * math.cos(dphi_rad)])
    along = detector.positions_mm()
    if detector.flat:
        element = np.stack([along, np.full_like(along, radius - distance)])
    else:
        bend = along / distance
        element = np.stack([distance * np.sin(bend), radius - distance * np.cos(bend)])
    way = element - source[:, None]
    length = np.hypot(*way)
    x, y = way / length
    # The same line, seen from where it crosses the circle of the undeflected source.
    gamma = np.arcsin((source[1] * x - source[0] * y) / radius)
    return Rays(
        u_mm=distance * np.tan(gamma),
        column=np.arange(detector.columns, dtype=np.float64),
        lag_rad=np.arctan2(x, -y) - gamma,
        middle=-(source[0] * x + source[1] * y) / length,
        length_mm=length,
    )


def flat_bins(detector: Detector, fans: list[Rays]) -> Floats:
    """Bins on a flat detector as wide as a column, between the outermost ones of all fans.

    They keep the columns' position relative to the central ray, so that nothing is smoothed
    where the two detectors touch and a quarter offset stays one.
    """
    low = max(float(fan.u_mm[0]) for fan in fans) / detector.column_mm
    high = min(float(fan.u_mm[-1]) for fan in fans) / detector.column_mm
    first = math.ceil(low + detector.central_column - TINY)
    last = math.floor(high + detector.central_column + TINY)
    bins = np.arange(first, last + 1, dtype=np.float64)
    return (bins - detector.central_column) * detector.column_mm


def at_bins(fan: Rays, u_mm: Floats) -> Rays:
    """The rays between those of the columns that go to the bins ``u_mm``."""
    return Rays(
        u_mm=u_mm,
        column=np.interp(u_mm, fan.u_mm, fan.column),
        lag_rad=np.interp(u_mm, fan.u_mm, fan.lag_rad),
        middle=np.interp(u_mm, fan.u_mm, fan.middle),
        length_mm=np.interp(u_mm, fan.u_mm, fan.length_mm),
    )


def rows_of_slice(detector: Detector, rays: Rays, height_mm: float, dz_mm: float) -> Floats:
    """The row, from 0 and fractional, of every ray in a slice; never beyond the detector.

    ``height_mm`` is the slice's z and ``dz_mm`` the source's, both from the focal centre.
    """
    hit = dz_mm + (height_mm - dz_mm) / rays.middle
    return np.clip(detector.central_row - 1 - hit / detector.row_mm, 0, detector.rows - 1)


def sample_slice(
    values: NDArray, first_row: int, detector: Detector, rays: Rays, rows: Floats, dz_mm: float
) -> Floats:
    """One view of a slice from the projection's rows ``first_row`` and following.

    An inclined ray is longer than the fan ray it stands for; its integral is scaled by that.
    """
    last_row, last_column = values.shape[0] - 1, values.shape[1] - 1
    row = np.clip(np.floor(rows).astype(np.intp) - first_row, 0, max(last_row - 1, 0))
    column = np.clip(np.floor(rays.column).astype(np.intp), 0, max(last_column - 1, 0))
    below, right = np.minimum(row + 1, last_row), np.minimum(column + 1, last_column)
    down, across = rows - first_row - row, rays.column - column
    upper = (1 - across) * values[row, column] + across * values[row, right]
    lower = (1 - across) * values[below, column] + across * values[below, right]
    climb = (detector.central_row - 1 - rows) * detector.row_mm - dz_mm
    inclined = rays.length_mm / np.hypot(rays.length_mm, climb)
    return ((1 - down) * upper + down * lower) * inclined


def at_angles(wanted_rad: Floats, measured_rad: Floats, rays: Rays, values: NDArray) -> Floats:
    """Views at the wanted angles from rising measured ones ``[views, bins]``, linearly.

    The fan's source is not at the same angle for all bins when the real one is deflected.
    """
    seen = wanted_rad[:, None] - rays.lag_rad[None, :]
    place = np.interp(seen, measured_rad, np.arange(measured_rad.size, dtype=np.float64))
    before = np.minimum(place.astype(np.intp), max(measured_rad.size - 2, 0))
    after = np.minimum(before + 1, measured_rad.size - 1)
    share = place - before
    bins = np.arange(values.shape[1])[None, :]
    return (1 - share) * values[before, bins] + share * values[after, bins]
