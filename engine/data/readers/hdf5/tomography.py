"""CT scans of synchrotrons in HDF5: APS Data Exchange and NeXus NXtomo.

Data Exchange is ``/exchange/data``, ``data_white``, ``data_dark`` and ``theta``; NXtomo keeps all
frames in one stack, each with a key saying what it is.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import h5py
import numpy as np

from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.data.readers.hdf5.reader import StoredArray, children
from engine.data.readers.projections import Projections, open_projections
from engine.data.readers.volumes.slices import SliceView, by_slices
from engine.data.sinogram.dataset import SinogramDataset
from engine.data.sinogram.scan_geometry import Scan
from engine.data.sinogram.units import KEV, degrees, kiloelectronvolts, millimetres
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions


def attribute_text(node: h5py.Dataset | h5py.Group, name: str) -> str:
    """A text attribute, or '' when it is missing or something else."""
    value = node.attrs.get(name, "")
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def numbers(path: Path, stored: h5py.Dataset, count: int, what: str) -> np.ndarray:
    """``count`` real numbers."""
    if stored.size != count or stored.dtype.kind not in "fiu":
        raise RequestError(f"{path.name} has {stored.size} {what} for {count} frames.")
    return np.asarray(hdf5_safe.read(stored), dtype=np.float64).reshape(-1)


def length_mm(file: h5py.File, names: Iterable[str]) -> float | None:
    """The first of these lengths that is there with its unit; one without is not believed."""
    return _with_unit(file, names, millimetres)


def energy_kev(file: h5py.File, names: Iterable[str]) -> float | None:
    """The first of these energies, likewise; only such as photons of a CT scan have."""
    found = None
    with contextlib.suppress(RequestError):  # in a unit that is not known
        found = _with_unit(file, names, kiloelectronvolts)
    return found if found is not None and KEV[0] <= found <= KEV[-1] else None


def _with_unit(
    file: h5py.File, names: Iterable[str], factor: Callable[[str, str], float]
) -> float | None:
    for name in names:
        stored = hdf5_safe.item(file, name)
        if not isinstance(stored, h5py.Dataset) or stored.dtype.kind not in "fiu":
            continue
        unit = attribute_text(stored, "units")
        if not unit or stored.size != 1:
            continue
        value = float(hdf5_safe.read(stored).reshape(-1)[0])
        if math.isfinite(value) and value > 0:
            return value * factor(unit, str(name))
    return None


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


PROJECTION, FLAT, DARK, INVALID = 0, 1, 2, 3
KEYS = ("image_key", "image_key_control")
NX_ENERGIES = ("instrument/beam/incident_energy", "beam/incident_energy")
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
        energy = energy_kev(file, [f"{entry}/{name}" for name in NX_ENERGIES])
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
