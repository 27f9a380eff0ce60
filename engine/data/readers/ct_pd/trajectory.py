"""The way of the source around the patient, and which projections make a slice of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.data.readers.ct_pd.header import View
from engine.data.sinogram.rebinning import Floats
from engine.spec.errors import RequestError

TURN = 2 * math.pi
VIEWS_PER_STATION = 16  # at one z at least; in a helical scan it changes all the time
SAME_Z_MM = 1e-3
MAX_SLICES = 100_000


@dataclass(frozen=True)
class Plan:
    """What one slice is made from.

    ``views`` are numbers of views with rising ``angles_rad``; the fan's views are wanted at
    ``wanted_rad``, in the order of the trajectory's ``grid_rad`` and equal to it but for turns.
    """

    z_mm: float
    views: NDArray[np.intp]
    angles_rad: Floats
    wanted_rad: Floats


@dataclass(frozen=True)
class Trajectory:
    """Views by rising angle, the angles of the fan to be made, and the slices along z.

    ``starts`` are, for a scan in steps, the first views at each position of the table and the
    number of all views; helical scans have none.
    """

    angles_rad: Floats
    z_mm: Floats
    grid_rad: Floats
    slices_mm: Floats
    starts: NDArray[np.intp]
    slice_starts: NDArray[np.intp]  # which of ``starts`` a slice belongs to
    missing: int  # projections that should lie between others

    @property
    def helical(self) -> bool:
        return self.starts.size == 0

    @property
    def step_rad(self) -> float:
        return float(self.grid_rad[1] - self.grid_rad[0])

    @property
    def feed_mm(self) -> float:
        """How far the table moves in a turn; 0 when it stands still."""
        if not self.helical:
            return 0.0
        turns = (self.angles_rad[-1] - self.angles_rad[0]) / TURN
        return abs(float((self.z_mm[-1] - self.z_mm[0]) / turns))

    def plan(self, number: int, reach_rad: float) -> Plan:
        """Views within half a turn (and ``reach_rad`` more) of where the source was in slice."""
        z = float(self.slices_mm[number])
        if self.helical:
            return self._helical_plan(z, reach_rad)
        return self._step_plan(z, int(self.slice_starts[number]))

    def _helical_plan(self, z: float, reach_rad: float) -> Plan:
        centre = _angle_at(self, z)
        half = math.pi + reach_rad
        low, high = np.searchsorted(self.angles_rad, [centre - half, centre + half])
        views = np.arange(max(low - 1, 0), min(high + 1, self.angles_rad.size))
        turns = np.round((centre - self.grid_rad) / TURN)
        return Plan(z, views, self.angles_rad[views], self.grid_rad + TURN * turns)

    def _step_plan(self, z: float, station: int) -> Plan:
        views = np.arange(self.starts[station], self.starts[station + 1])
        angles = self.angles_rad[views]
        step, size = self.step_rad, self.grid_rad.size
        if size * step < TURN - step / 2:  # not a full turn
            turns = np.round((angles[0] - self.grid_rad[0]) / TURN)
            return Plan(z, views, angles, self.grid_rad + TURN * turns)
        views = views[angles < angles[0] + TURN - step / 2]
        angles = self.angles_rad[views]
        # The table stands still: the first views come again after a turn.
        ring = np.concatenate([views[-8:], views, views[:8]])
        around = np.concatenate([angles[-8:] - TURN, angles, angles[:8] + TURN])
        order = np.argsort(around, kind="stable")
        turns = np.ceil((angles[0] - step / 2 - self.grid_rad) / TURN)
        return Plan(z, ring[order], around[order], self.grid_rad + TURN * turns)


def make_trajectory(
    name: str,
    views: Sequence[View],
    turn_views: int | None,
    slice_mm: float,
    row_offsets_mm: Floats,
) -> tuple[Trajectory, list[View]]:
    """The trajectory and the views in its order.

    ``row_offsets_mm`` are the heights of the detector's rows at the axis, from the focal
    centre: the slices of a scan in steps. A helical scan has slices every ``slice_mm``.
    """
    ordered = sorted(views, key=lambda view: (view.number, view.path.name))
    phi = np.array([view.phi_rad for view in ordered])
    z = np.array([view.z_mm for view in ordered])
    stations = np.flatnonzero(np.abs(np.diff(z, prepend=np.inf)) > SAME_Z_MM)
    in_steps = len(ordered) >= VIEWS_PER_STATION * stations.size
    starts = np.append(stations, len(ordered)) if in_steps else np.array([0, len(ordered)])
    angles, sign = _unwrapped(name, phi, starts)
    if sign < 0:  # count from the end, so that angles rise
        angles, z, ordered = angles[::-1], z[::-1], ordered[::-1]
        starts = len(ordered) - starts[::-1]
    step = _step(name, angles, starts, turn_views)
    missing = _missing(angles, starts, step)
    none = np.empty(0, dtype=np.intp)
    if in_steps:
        grid = _arc(name, angles, starts, step)
        at = np.add.outer(z[starts[:-1]], row_offsets_mm)
        owner = np.broadcast_to(np.arange(starts.size - 1)[:, None], at.shape)
        order = np.argsort(at, axis=None, kind="stable")
        slices, owners = at.ravel()[order], owner.ravel()[order]
    else:
        grid, starts, owners = _turn(angles[0], step), none, none
        slices = _helical_slices(name, angles, z, slice_mm, step)
    if slices.size > MAX_SLICES:
        raise RequestError(f"{name}: its positions would make more than {MAX_SLICES} slices.")
    return Trajectory(angles, z, grid, slices, starts, owners, missing), ordered


def _unwrapped(name: str, phi: Floats, starts: NDArray[np.intp]) -> tuple[Floats, float]:
    """Angles that go on beyond a turn, station by station, and whether they rise or fall."""
    angles = np.concatenate([np.unwrap(phi[a:b]) for a, b in pairwise(starts)])
    within = np.ones(phi.size - 1, dtype=bool)
    within[starts[1:-1] - 1] = False
    steps = np.diff(angles)[within]
    sign = 1.0 if steps.sum() >= 0 else -1.0
    if steps.size < 2 or (sign * steps < -1e-5).any() or not (sign * steps > 0).any():
        raise RequestError(
            f"{name}: the projections' angles do not go around in one direction; files may be "
            "missing or wrongly numbered."
        )
    return angles, sign


def _step(name: str, angles: Floats, starts: NDArray[np.intp], turn_views: int | None) -> float:
    """Angle between views: as stated, if the views agree with that, else as measured."""
    steps = np.concatenate([np.diff(angles[a:b]) for a, b in pairwise(starts)])
    # Two views of a deflected source may be at one angle, so pairs are looked at.
    pairs = np.convolve(steps, [0.5, 0.5], "valid") if steps.size > 1 else steps
    step = abs(float(np.median(pairs)))
    if step > 0 and turn_views and abs(TURN / turn_views - step) < 0.05 * step:
        return TURN / turn_views
    if not 0 < step < math.pi / 8 or TURN / step > 2 * angles.size + 2:
        raise RequestError(f"{name}: the projections' angles are too few or too uneven.")
    return TURN / round(TURN / step)


def _missing(angles: Floats, starts: NDArray[np.intp], step: float) -> int:
    gaps = [np.diff(angles[a:b]) for a, b in pairwise(starts)]
    wide = np.concatenate(gaps) / step
    wide = wide[wide > 2.5]
    return int(np.round(wide - 1).sum())


def _turn(first: float, step: float) -> Floats:
    return first + np.arange(round(TURN / step), dtype=np.float64) * step


def _arc(name: str, angles: Floats, starts: NDArray[np.intp], step: float) -> Floats:
    """A full turn, or the part of one that is seen from every position of the table."""
    firsts = angles[starts[:-1]]
    spans = angles[starts[1:] - 1] - firsts
    if (spans > TURN - 1.5 * step).all():
        return _turn(float(firsts[0]), step)
    apart = np.abs(np.mod(firsts - firsts[0] + math.pi, TURN) - math.pi)
    if (apart > step / 2).any() or (np.abs(spans - spans[0]) > step / 2).any():
        raise RequestError(
            f"{name}: the table's positions were scanned over different parts of a turn; give "
            "the projections of one position."
        )
    return firsts[0] + np.arange(round(float(spans[0]) / step) + 1) * step


def _helical_slices(name: str, angles: Floats, z: Floats, slice_mm: float, step: float) -> Floats:
    """Slices for which the source went half a turn before and after them."""
    span = float(angles[-1] - angles[0])
    if span < TURN - 1.5 * step:
        raise RequestError(
            f"{name}: {math.degrees(span):.0f} degrees of a helical scan are there; a slice needs "
            "a full turn."
        )
    forward = 1.0 if z[-1] > z[0] else -1.0
    if (np.diff(z) * forward < -SAME_Z_MM).any():
        raise RequestError(f"{name}: the table goes to and fro; give the projections of one way.")
    slack = min(math.pi, span / 2)
    first, last = np.interp([angles[0] + slack, angles[-1] - slack], angles, z)
    low, high = min(first, last), max(first, last)
    count = (high - low) / slice_mm
    if count > MAX_SLICES:
        raise RequestError(f"{name}: its positions would make more than {MAX_SLICES} slices.")
    return low + np.arange(int(count + 1e-6) + 1) * slice_mm


def _angle_at(trajectory: Trajectory, z: float) -> float:
    """Where the source was when it passed the slice."""
    along, angles = trajectory.z_mm, trajectory.angles_rad
    if along[-1] < along[0]:
        along, angles = along[::-1], angles[::-1]
    return float(np.interp(z, np.maximum.accumulate(along), angles))
