"""A plain array of measured values as a sinogram, with the geometry told beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.data.dataset import Fact
from engine.data.readers.projections import with_centre
from engine.data.readers.volumes.slices import Indexable, by_slices
from engine.data.sidecar import Described
from engine.data.sinogram.dataset import Opener, SinogramDataset, open_scan
from engine.data.sinogram.scan_geometry import GeometryNeeded, Scan, layout
from engine.data.sinogram.units import Rows, from_counts, from_transmission
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

NAMES = ("slice", "view", "detector")
UNITS = ("line-integral", "transmission", "counts")


def open_sinogram_array(
    array: Indexable,
    path: Path,
    options: InputOptions,
    described: Described,
    reopen: Opener,
    axes: str | None = None,
    files: tuple[Path, ...] | None = None,
    said: Scan | None = None,
    find_centre: bool = False,
) -> SinogramDataset:
    """Slices of ``array``; ``axes`` is the format's own order and ``said`` what it knows.

    ``find_centre``: whether the format is one of stacks that never say their rotation centre.
    """
    if array.dtype.kind not in "fiu":
        raise RequestError(f"{path.name} holds {array.dtype} values: a sinogram is real numbers.")
    view = by_slices(array, path.name, NAMES, described.options.axes or axes)
    count, views, detectors = view.shape
    scan = said or Scan(views, detectors)
    missing = _missing_unit(described)
    try:
        if missing:  # one message for all that is missing
            layout(path.name, scan, described)
            raise GeometryNeeded(path.name, missing)
    except GeometryNeeded as error:
        if error.missing == missing:
            raise
        raise GeometryNeeded(path.name, missing + error.missing) from None
    unit = described.options.unit
    flat, dark = _levels(path, described, count, detectors)

    def rows(number: int) -> Rows:
        values = np.asarray(view[number])
        if unit == "line-integral":
            return Rows(values.astype(np.float32))
        if unit == "transmission":
            return from_transmission(values)
        pick = number if len(flat) > 1 else 0
        return from_counts(values, flat[pick], dark[number if len(dark) > 1 else 0])

    def made(scan: Scan) -> SinogramDataset:
        return open_scan(path, options, described, scan, rows, count, reopen, files)

    dataset = with_centre(made, scan, described, find_centre)
    dataset.axes = described.options.axes or axes
    dataset.facts.append(Fact("unit", str(unit), described.origin("unit")))
    return dataset


def _missing_unit(described: Described) -> tuple[str, ...]:
    options = described.options
    if options.unit not in UNITS:
        return ("unit",)
    if options.unit == "counts" and options.scan_air is None and described.flat is None:
        return ("scan_air",)
    return ()


def _levels(
    path: Path, described: Described, count: int, detectors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Flat and dark as ``[1 or slices, 1 or detectors]``."""
    air = described.options.scan_air
    flat = air if air is not None else described.flat
    levels = []
    for key, value in (("flat", flat), ("dark", described.dark)):
        level = np.atleast_2d(np.asarray(0.0 if value is None else value, dtype=np.float64))
        if level.shape[0] not in (1, count) or level.shape[1] not in (1, detectors):
            raise RequestError(
                f"{path.name}: '{key}' must be one number or one per detector bin ({detectors})."
            )
        levels.append(level)
    return levels[0], levels[1]
