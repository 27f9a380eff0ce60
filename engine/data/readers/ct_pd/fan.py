"""A DICOM-CT-PD scan as the fan that every slice of it is seen with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.data.readers.ct_pd.frame import Frame
from engine.data.readers.ct_pd.header import Scanner, View, read_rows
from engine.data.readers.ct_pd.trajectory import make_trajectory
from engine.data.sinogram.line_integrals import Rows, from_counts, from_transmission
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
