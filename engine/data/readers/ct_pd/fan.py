"""A DICOM-CT-PD scan as the fan that every slice of it is seen with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.data.readers.ct_pd.frame import Frame
from engine.data.readers.ct_pd.header import Scanner, View, read_rows
from engine.data.sinogram.rebinning import (
    Floats,
    Rays,
    at_angles,
    at_bins,
    column_rays,
    flat_bins,
    rows_of_slice,
    sample_slice,
)
from engine.data.sinogram.scan_geometry import Scan
from engine.data.sinogram.units import Rows, from_counts, from_transmission
from engine.spec.errors import RequestError

MAX_SPOTS = 8


class Conversion:
    """Stored numbers to line integrals."""

    def __init__(self, unit: str, air: float | None = None) -> None:
        self.unit, self.air = unit, air

    def __call__(self, values: NDArray[np.float64]) -> Rows:
        if self.unit == "transmission":
            return from_transmission(values)
        if self.unit == "counts":
            assert self.air is not None
            return from_counts(values, self.air)
        return Rows(values.astype(np.float32))


class FanScan:
    """The projections of one scan, and how they become the fans of its slices."""

    def __init__(self, name: str, scanner: Scanner, views: Sequence[View], frame: Frame) -> None:
        self.name, self.scanner, self.frame = name, scanner, frame
        detector = scanner.detector
        heights = (detector.central_row - np.arange(1.0, detector.rows + 1)) * detector.slice_mm
        self.trajectory, self.views = make_trajectory(
            name, views, scanner.turn_views, detector.slice_mm, heights
        )
        self.spots, self.spot, self.steady = _spots(self.views)
        columns = [column_rays(detector, dphi, drho) for dphi, drho in self.spots]
        self.u_mm = flat_bins(detector, columns)
        if self.u_mm.size < 2:
            raise RequestError(f"{name}: its detector sees next to nothing.")
        self.fans: list[Rays] = [at_bins(fan, self.u_mm) for fan in columns]

    @cached_property
    def slices_mm(self) -> Floats:
        """z of every slice in the file's frame, from the feet to the head."""
        slices = self.trajectory.slices_mm
        return slices[::-1] if self.frame.feet_first else slices

    def scan(self) -> Scan:
        trajectory, detector = self.trajectory, self.scanner.detector
        u = self.frame.u_mm(self.u_mm)
        return Scan(
            views=trajectory.grid_rad.size,
            detectors=u.size,
            angles_deg=np.rad2deg(self.frame.angles_rad(trajectory.grid_rad)),
            kind="fan",
            pitch_mm=detector.column_mm,
            offset_mm=float(u[0] + u[-1]) / 2,
            source_origin_mm=detector.radius_mm,
            source_detector_mm=detector.distance_mm,
            origin="DICOM-CT-PD tags",
            offset_origin="DetectorCentralElement",
        )

    def read(self, number: int, to_integrals: Conversion) -> Rows:
        """The fan of one slice, in the engine's order."""
        trajectory = self.trajectory
        last = trajectory.slices_mm.size - 1
        reach = trajectory.step_rad * (len(self.spots) + 1) + max(
            float(np.abs(fan.lag_rad).max()) for fan in self.fans
        )
        plan = trajectory.plan(last - number if self.frame.feet_first else number, reach)
        samples = np.empty((plan.views.size, self.u_mm.size), dtype=np.float32)
        starved = 0
        for place, view in enumerate(plan.views):
            samples[place], dark = self._sample(int(view), plan.z_mm, to_integrals)
            starved += dark
        total = np.zeros((plan.wanted_rad.size, self.u_mm.size))
        spots = self.spot[plan.views]
        for spot, fan in enumerate(self.fans):
            own = spots == spot
            total += at_angles(plan.wanted_rad, plan.angles_rad[own], fan, samples[own])
        values = self.frame.views(total / len(self.fans))
        return Rows(np.ascontiguousarray(values, dtype=np.float32), starved)

    def _sample(self, number: int, z_mm: float, to_integrals: Conversion) -> tuple[Floats, int]:
        view, detector = self.views[number], self.scanner.detector
        rays = self.fans[self.spot[number]]
        rows = rows_of_slice(detector, rays, z_mm - view.z_mm, view.dz_mm)
        first = int(rows.min())
        last = min(int(rows.max()) + 1, detector.rows - 1)
        measured = to_integrals(read_rows(self.scanner, view, first, last))
        return (
            sample_slice(measured.values, first, detector, rays, rows, view.dz_mm),
            measured.starved,
        )


def _spots(views: Sequence[View]) -> tuple[list[tuple[float, float]], NDArray[np.intp], bool]:
    """The in-plane positions of the focal spot, which of them each view has, and if it is steady.

    Views of one spot are interpolated among themselves, for two spots see different rays. A
    spot that drifts instead of being switched has no such places: then its mean counts.
    """
    shifts = np.array([(view.dphi_rad, view.drho_mm) for view in views])
    kinds, spot = np.unique(np.round(shifts / (1e-5, 1e-2)), axis=0, return_inverse=True)
    spot, count = spot.reshape(-1), len(kinds)
    if count <= MAX_SPOTS:
        places = [np.flatnonzero(spot == n) for n in range(count)]
        waits = [np.diff(place, prepend=-1, append=len(views)).max() for place in places]
        if max(waits) <= 2 * count:
            return [_mean(shifts[place]) for place in places], spot, True
    return [_mean(shifts)], np.zeros(len(views), dtype=np.intp), False


def _mean(shifts: Floats) -> tuple[float, float]:
    dphi, drho = shifts.mean(axis=0)
    return float(dphi), float(drho)


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
