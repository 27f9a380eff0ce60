"""Stacks of projection images with flat and dark fields: one detector row is one slice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.data.readers.volumes.slices import SliceView
from engine.data.sidecar import Described, describe
from engine.data.sinogram.dataset import Opener, SinogramDataset, open_scan
from engine.data.sinogram.geometry_check import FEWEST_BINS, NOTHING_FITS, SHORT_ARC_DEG, arc_deg
from engine.data.sinogram.rotation_centre import estimate_offset
from engine.data.sinogram.scan_geometry import GeometryNeeded, Scan, layout
from engine.data.sinogram.units import Rows, from_counts, from_transmission
from engine.physics.noise_estimate import Detector, photon_transfer
from engine.spec.errors import RequestError, marked
from engine.spec.input_options import InputOptions


@dataclass
class Projections:
    """Frames by detector row, and which of them are projections, flat and dark fields.

    ``flats`` and ``darks`` may be rows of another array; None where the file has none.
    """

    frames: SliceView  # [row][frame, column]
    kept: NDArray[np.intp]
    flats: SliceView | None = None
    darks: SliceView | None = None
    flat_frames: NDArray[np.intp] | None = None
    dark_frames: NDArray[np.intp] | None = None

    def rows(self, number: int, described: Described) -> Rows:
        """Line integrals of one detector row; the fields are averaged for it alone."""
        frames = self.frames[number]
        values = frames[self.kept]
        unit = described.options.unit or "counts"
        if unit == "line-integral":
            return Rows(values.astype(np.float32))
        if unit == "transmission":
            return from_transmission(values)
        flat: float | NDArray | None = (
            described.options.scan_air
        )  # what a person says counts more than the file
        flats, darks = self.fields(number, frames)
        if flat is None:
            flat = described.flat if flats is None else flats.mean(axis=0)
        dark = described.dark if darks is None else darks.mean(axis=0)
        assert flat is not None  # asked for when the file was opened
        return from_counts(values, flat, 0.0 if dark is None else dark)

    def fields(
        self, number: int, frames: np.ndarray | None = None
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """All flat and all dark fields ``[n, column]`` of one detector row."""

        def of(
            view: SliceView | None, chosen: NDArray[np.intp] | None
        ) -> NDArray[np.float64] | None:
            if view is not None:
                return view[number].astype(np.float64)
            if chosen is None or not chosen.size:
                return None
            rows = self.frames[number] if frames is None else frames
            return rows[chosen].astype(np.float64)

        return of(self.flats, self.flat_frames), of(self.darks, self.dark_frames)

    def detector(self, number: int) -> Detector | None:
        flats, darks = self.fields(number)
        return None if flats is None else photon_transfer(flats, darks)


def open_projections(
    path: Path,
    options: InputOptions,
    scan: Scan,
    stack: Projections,
    reopen: Opener,
    warnings: list[str],
) -> SinogramDataset:
    """The dataset, with the rotation centre estimated from the middle row unless it is told."""
    described = describe(path, options)
    unit = described.options.unit or "counts"
    has_flat = stack.flats is not None or (
        stack.flat_frames is not None and stack.flat_frames.size > 0
    )
    if unit not in ("counts", "transmission", "line-integral"):
        raise RequestError(f"{path.name}: ⟦unit⟧ {unit} is not a unit of projections.")
    told_flat = described.options.scan_air is not None or described.flat is not None
    missing = ("scan_air",) if unit == "counts" and not has_flat and not told_flat else ()
    try:
        layout(path.name, scan, described)
    except GeometryNeeded as error:
        raise GeometryNeeded(path.name, missing + error.missing) from None
    if missing:
        raise GeometryNeeded(path.name, missing)

    def rows(number: int) -> Rows:
        return stack.rows(number, described)

    counted = has_flat and unit == "counts" and described.options.scan_air is None

    def made(scan: Scan) -> SinogramDataset:
        count, detector = stack.frames.shape[0], stack.detector if counted else None
        return open_scan(path, options, described, scan, rows, count, reopen, detector=detector)

    dataset = with_centre(made, scan, described, True)
    told = described.options.unit is not None
    origin = described.origin("unit") if told else "projections with flat and dark fields"
    dataset.add_fact("unit", unit, origin)
    dataset.warnings[:0] = warnings
    return dataset


def with_centre(
    made: Callable[[Scan], SinogramDataset], scan: Scan, described: Described, usual: bool
) -> SinogramDataset:
    """The dataset, with the rotation centre of its middle slice unless somebody tells it.

    ``usual``: whether it is looked for when the person says nothing of it.
    """
    dataset, asked = made(scan), described.options.scan_find_centre
    if asked is None and min(scan.views, scan.detectors) < FEWEST_BINS:
        return dataset
    if described.options.scan_offset_mm is not None or scan.offset_mm is not None:
        return dataset
    if not (usual if asked is None else asked):
        return dataset
    if not asked and (span := arc_deg(dataset.geometry)) < SHORT_ARC_DEG:
        sentence = (
            f"The rotation centre is not in the file, and views over {span:.0f} degrees do not "
            "tell it: the middle of the detector is assumed."
        )
        dataset.check("centre", "doubtful", sentence, "give ⟦scan_offset_mm⟧, if it is known")
        dataset.warn(sentence)
        return dataset
    try:
        middle = dataset.count // 2
        found = estimate_offset(dataset.read(middle), dataset.geometry)
    except RequestError as error:
        dataset.warn(f"The rotation centre could not be estimated and is assumed: {marked(error)}")
        return dataset
    used = found.mm - dataset.layout.trim_mm
    offset_mm = -used if dataset.layout.flip else used
    dataset = made(replace(scan, offset_mm=offset_mm, offset_origin="estimated"))
    note = (
        f"The rotation centre is not in the file; slice {middle} fits best with a detector offset "
        f"of {used:.4g} mm (⟦scan_offset_mm⟧ changes it), which leaves "
        f"{100 * found.residual:.1f} % of the data unexplained."
    )
    if found.at_edge:
        note += " That is at the end of the range searched: look at the image."
    doubtful = found.at_edge or found.residual > NOTHING_FITS
    dataset.check(
        "centre",
        "doubtful" if doubtful else "corrected",
        note,
        "give ⟦scan_offset_mm⟧, if it is known" if doubtful else "",
    )
    dataset.warn(note)
    return dataset
