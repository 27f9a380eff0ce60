"""APS Data Exchange (``/exchange/data``, ``data_white``, ``data_dark``, ``theta``)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import h5py
import numpy as np

from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.data.readers.hdf5.reader import StoredArray
from engine.data.readers.hdf5.values import attribute_text, energy_kev, length_mm, numbers
from engine.data.readers.projections import Projections, open_projections
from engine.data.readers.units import degrees
from engine.data.readers.volumes.slices import SliceView, by_slices
from engine.data.sinogram.dataset import SinogramDataset
from engine.data.sinogram.scan_geometry import Scan
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

DETECTOR = "measurement/instrument/detector"
PIXEL_NAMES = ("actual_pixel_size_x", "pixel_size_x", "x_pixel_size", "pixel_size")
ENERGIES = ("measurement/instrument/monochromator/energy", "measurement/instrument/source/energy")
AXES = {"theta": "frame", "y": "row", "x": "column"}


def open_data_exchange(path: Path, options: InputOptions) -> SinogramDataset:
    warnings: list[str] = []
    with hdf5_safe.open_h5(path) as file:
        data = hdf5_safe.array(file, "exchange/data")
        if data is None or data.ndim != 3 or 0 in data.shape:
            raise RequestError(f"{path.name}: /exchange/data is not a stack of projections.")
        axes = _axes(data)
        frames = data.shape[axes.index("frame")]
        theta = _theta(path, file, frames, warnings, options.scan_angle_unit)
        pitch = length_mm(file, [f"{DETECTOR}/{name}" for name in PIXEL_NAMES])
        energy = energy_kev(file, ENERGIES)
        detectors = data.shape[axes.index("column")]
        fields = {
            name: hdf5_safe.array(file, f"exchange/{name}") is not None
            for name in ("data_white", "data_dark")
        }

    def view(name: str) -> SliceView:
        order = ",".join(axes)
        return by_slices(StoredArray(path, f"exchange/{name}"), path.name, ROWS, order)

    stack = Projections(
        frames=view("data"),
        kept=np.arange(frames),
        flats=view("data_white") if fields["data_white"] else None,
        darks=view("data_dark") if fields["data_dark"] else None,
    )
    for field in (stack.flats, stack.darks):
        if field is not None and (field.shape[0], field.shape[2]) != (
            stack.frames.shape[0],
            detectors,
        ):
            raise RequestError(f"{path.name}: flat or dark fields have another size than the data.")
    scan = Scan(
        views=frames,
        detectors=detectors,
        angles_deg=theta,
        kind="parallel",
        pitch_mm=pitch,
        energy_kev=energy,
        origin="Data Exchange (a synchrotron's)",
    )
    return open_projections(path, options, scan, stack, partial(open_data_exchange, path), warnings)


ROWS = ("row", "frame", "column")


def _axes(data: h5py.Dataset) -> list[str]:
    """Projections first, unless the file says another order (``y:theta:x``)."""
    said = attribute_text(data, "axes").replace(" ", "").split(":")
    if sorted(said) == sorted(AXES):
        return [AXES[axis] for axis in said]
    return ["frame", "row", "column"]


def _theta(
    path: Path, file: h5py.File, frames: int, warnings: list[str], told: str | None
) -> np.ndarray:
    """In degrees, unless the person says of which unit the numbers are."""
    stored = hdf5_safe.array(file, "exchange/theta")
    if stored is None:
        warnings.append(
            f"The file has no angles; {frames} views from 0 to 180 degrees, both included, "
            "are assumed."
        )
        return np.linspace(0.0, 180.0, frames)
    theta = numbers(path, stored, frames, "angles")
    if told is not None:
        return theta
    return theta * degrees(attribute_text(stored, "units") or "deg", path.name)
