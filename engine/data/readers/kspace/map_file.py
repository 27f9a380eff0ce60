"""Coil maps from a file of their own, in whatever order of axes they were saved."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np

from engine.data.kspace.grid import Kspace, centre_slice
from engine.data.readers.arrays import choose
from engine.data.readers.hdf5.safe import array, open_h5, read
from engine.files.path_safety import check_regular
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

AXES = ("slice", "coil", "read", "phase")
# Sizes alone may fit several orders; the first of these that fits is taken.
ORDERS = sorted(permutations(range(4)), key=lambda order: order.index(2) > order.index(3))


def open_maps(path: Path, count: int, coils: int, size: tuple[int, int]) -> Callable[[int], Kspace]:
    """Gives the maps ``[coils, H, W]`` of a slice; ``size`` is that of the image.

    Maps may be one set for all slices or one per slice, and may still hold the rows that the
    removal of readout oversampling cuts away.
    """
    values = _read(path)
    if values.dtype.kind != "c":
        raise RequestError(f"{path} holds {values.dtype} numbers: coil maps are complex.")
    values = values.squeeze()
    rows, columns = size
    for slices in dict.fromkeys((count, 1)):
        for height in dict.fromkeys((rows, *_longer(values.shape, rows))):
            ordered = _ordered(values, (slices, coils, height, columns))
            if ordered is not None:
                kept = ordered[:, :, centre_slice(height, rows)]
                if not kept.any():
                    raise RequestError(f"{path}: the coil maps are zero everywhere.")
                return lambda number: np.array(kept[number if slices > 1 else 0], np.complex64)
    raise RequestError(
        f"{path}: coil maps of {values.shape} do not fit {coils} coils of {rows} x {columns} "
        f"pixels{f' in {count} slices' if count > 1 else ''}."
    )


def _longer(shape: tuple[int, ...], rows: int) -> list[int]:
    return [n for n in shape if rows < n <= 4 * rows]


def _ordered(values: np.ndarray, sizes: tuple[int, int, int, int]) -> np.ndarray | None:
    """As [slice, coil, read, phase], if the axes of more than one entry can be so ordered."""
    real = [axis for axis in range(4) if sizes[axis] > 1]
    if values.ndim != len(real):
        return None
    for order in ORDERS:
        axes = [axis for axis in order if axis in real]
        if tuple(sizes[axis] for axis in axes) == values.shape:
            return values.transpose([axes.index(axis) for axis in real]).reshape(sizes)
    return None


def _read(path: Path) -> np.ndarray:
    if not path.exists():
        raise RequestError(f"⟦maps⟧ {path} does not exist.")
    check_regular(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        from engine.data.readers.npy import read_npy

        return np.asarray(read_npy(path))
    if suffix in (".cfl", ".hdr"):
        from engine.data.readers.kspace.bart import open_pair

        data = open_pair(path)
        return data[:, :, :, :, 0] if data.shape[4] > 1 else data  # the first of several sets
    if suffix in (".h5", ".hdf5"):
        return _read_h5(path)
    if suffix == ".mat":
        from engine.data.readers.mat5 import is_hdf5, read_mat5

        if is_hdf5(path):
            return _read_h5(path)
        found = {k: v for k, v in read_mat5(path).items() if isinstance(v, np.ndarray)}
        return found[_name(path, {k: v.shape for k, v in found.items()})]
    raise RequestError(f"⟦maps⟧ {path}: give a .npy, .cfl, .h5 or .mat file.")


def _read_h5(path: Path) -> np.ndarray:
    from engine.data.readers.hdf5.mat73 import Mat73, is_complex
    from engine.data.readers.hdf5.reader import children

    with open_h5(path) as file:
        nodes = {
            name: node
            for name, node in children(file)
            if isinstance(node, h5py.Dataset) and (node.dtype.kind == "c" or is_complex(node))
        }
        node = nodes[_name(path, {name: node.shape for name, node in nodes.items()})]
        if is_complex(node) or "MATLAB_class" in node.attrs:
            return np.asarray(Mat73(file).value(node, 0))
        stored = array(file, node.name)
        return read(stored) if stored is not None else np.zeros(0)


def _name(path: Path, shapes: dict[str, tuple[int, ...]]) -> str:
    for name in ("maps", "sens", "sensitivities", "smaps", "coilmaps"):
        if name in shapes:
            return name
    return choose(path, shapes, InputOptions())
