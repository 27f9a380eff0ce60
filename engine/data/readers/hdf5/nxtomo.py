"""NeXus NXtomo: all frames in one stack, each with a key saying what it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import h5py
import numpy as np

from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.data.readers.hdf5.reader import StoredArray, children
from engine.data.readers.hdf5.values import attribute_text, energy_kev, length_mm, numbers
from engine.data.readers.projections import Projections, open_projections
from engine.data.readers.units import degrees
from engine.data.readers.volumes.slices import by_slices
from engine.data.sinogram.dataset import SinogramDataset
from engine.data.sinogram.scan_geometry import Scan
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

PROJECTION, FLAT, DARK, INVALID = 0, 1, 2, 3
KEYS = ("image_key", "image_key_control")
ENERGIES = ("instrument/beam/incident_energy", "beam/incident_energy")
ENTRIES, DEPTH = 64, 2


def find_detector(file: h5py.File) -> str | None:
    """The path of the detector group of the first entry that has frames with keys."""
    seen: set[tuple[int, int]] = set()
    for entry, group in _entries(file):
        for name, instrument in children(group):
            if not _is(name, instrument, "instrument", "NXinstrument"):
                continue
            if hdf5_safe.address(instrument) in seen:
                continue
            seen.add(hdf5_safe.address(instrument))
            for part, detector in children(instrument):
                if isinstance(detector, h5py.Group) and _has_frames(detector):
                    return f"{entry}{name}/{part}"
    return None


def _entries(file: h5py.File) -> list[tuple[str, h5py.Group]]:
    """Groups that may be entries (or Diamond's subentries), outermost first, each once."""
    level: list[tuple[str, h5py.Group]] = [("", file)]
    found: list[tuple[str, h5py.Group]] = []
    seen = {hdf5_safe.address(file)}
    for _ in range(DEPTH):
        inner: list[tuple[str, h5py.Group]] = []
        for prefix, group in level:
            for name, node in children(group):
                if not isinstance(node, h5py.Group) or len(inner) >= ENTRIES:
                    continue
                if (address := hdf5_safe.address(node)) not in seen:
                    seen.add(address)
                    inner.append((f"{prefix}{name}/", node))
        found, level = [*found, *inner], inner
    return found


def _is(name: str, node: h5py.Group | h5py.Dataset, usual: str, nx_class: str) -> bool:
    if not isinstance(node, h5py.Group):
        return False
    return name == usual or attribute_text(node, "NX_class") == nx_class


def _has_frames(detector: h5py.Group) -> bool:
    return "data" in detector.keys() and any(key in detector.keys() for key in KEYS)  # noqa: SIM118


def open_nxtomo(path: Path, options: InputOptions) -> SinogramDataset:
    with hdf5_safe.open_h5(path) as file:
        detector = find_detector(file)
        if detector is None:
            raise RequestError(f"{path.name} holds no NXtomo entry.")
        data = hdf5_safe.array(file, f"{detector}/data")
        if data is None or data.ndim != 3 or 0 in data.shape:
            raise RequestError(f"{path.name}: '{detector}/data' is not a stack of frames.")
        frames, _, detectors = data.shape
        key = _keys(path, file, detector, frames)
        entry = detector.rsplit("/", 2)[0]
        angles = _angles(path, file, entry, frames, options.scan_angle_unit)
        pitch = length_mm(file, [f"{detector}/{name}" for name in ("x_pixel_size", "pixel_size")])
        energy = energy_kev(file, [f"{entry}/{name}" for name in ENERGIES])
    kept = np.flatnonzero(key == PROJECTION)
    if not kept.size:
        raise RequestError(f"{path.name}: none of its {frames} frames is a projection.")
    view = by_slices(
        StoredArray(path, f"{detector}/data"),
        path.name,
        ("row", "frame", "column"),
        "frame,row,column",
    )
    stack = Projections(
        frames=view,
        kept=kept,
        flat_frames=np.flatnonzero(key == FLAT),
        dark_frames=np.flatnonzero(key == DARK),
    )
    scan = Scan(
        views=kept.size,
        detectors=detectors,
        angles_deg=None if angles is None else angles[kept],
        kind="parallel",
        pitch_mm=pitch,
        energy_kev=energy,
        origin="NXtomo",
    )
    invalid = int(((key < PROJECTION) | (key >= INVALID)).sum())
    warnings = [f"{invalid} frames are marked invalid and left out."] if invalid else []
    return open_projections(path, options, scan, stack, partial(open_nxtomo, path), warnings)


def _keys(path: Path, file: h5py.File, detector: str, frames: int) -> np.ndarray:
    for name in KEYS:
        stored = hdf5_safe.array(file, f"{detector}/{name}")
        if stored is not None:
            return numbers(path, stored, frames, "image keys")
    raise RequestError(f"{path.name} has no image keys.")


def _angles(
    path: Path, file: h5py.File, entry: str, frames: int, told: str | None
) -> np.ndarray | None:
    """In degrees, unless the person says of which unit the numbers are."""
    group = hdf5_safe.item(file, entry)
    assert isinstance(group, h5py.Group)
    samples = [name for name, node in children(group) if _is(name, node, "sample", "NXsample")]
    for name in [*samples, "data"]:
        # in NXdata the angles are usually a link to those of the sample
        if name == "data" and samples:
            continue
        stored = hdf5_safe.array(file, f"{entry}/{name}/rotation_angle")
        if stored is not None:
            angles = numbers(path, stored, frames, "angles")
            if told is not None:
                return angles
            return angles * degrees(attribute_text(stored, "units") or "deg", path.name)
    return None
