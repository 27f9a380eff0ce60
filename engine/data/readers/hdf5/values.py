"""Small values of HDF5 files: lists of numbers, lengths with units, text attributes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import h5py
import numpy as np

from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.data.readers.units import kiloelectronvolts, millimetres
from engine.data.sinogram.water import KEV
from engine.spec.errors import RequestError


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
