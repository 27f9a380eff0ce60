"""K-space, or coil maps, as a bare array, whose axes a person names or its sizes tell."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np

from engine.data.kspace.dataset import KspaceDataset
from engine.data.kspace.grid import (
    MAX_SLICE_BYTES,
    Kspace,
    KspaceSlice,
    centre_slice,
    measured_samples,
    plan_grid,
)
from engine.data.readers.arrays import choose
from engine.data.readers.hdf5.safe import array, open_h5, read
from engine.files.path_safety import check_regular
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.spec.input_options import InputOptions

NAMES = ("slice", "coil", "read", "phase", "complex")
EXAMPLES = {
    2: ("read,phase", "phase,read"),
    3: ("slice,read,phase", "coil,read,phase"),
    4: ("slice,coil,read,phase", "slice,read,phase,coil"),
}


def open_kspace_array(
    array: np.ndarray, path: Path, options: InputOptions, maps: np.ndarray | None = None
) -> KspaceDataset:
    """``array`` may be any object with shape, dtype and slicing; read per slice.

    ``maps`` are sensitivities with the same axes, when there are any.
    """
    axes, origin = _axes_of(array, path, options)
    sizes = dict(zip(axes, array.shape, strict=True))
    count, coils = sizes.get("slice", 1), sizes.get("coil", 1)
    height, width = sizes["read"], sizes["phase"]
    if coils * height * width * 8 > MAX_SLICE_BYTES:
        raise RequestError(f"{path}: slices of {coils} x {height} x {width} are too large.")
    if maps is not None and tuple(maps.shape) != tuple(array.shape):
        raise RequestError(f"{path}: the maps {maps.shape} do not fit the data {array.shape}.")
    plan = plan_grid((height, width), None, None, options)
    read_kspace = _reader(array, axes, path)
    read_maps = None if maps is None else _reader(maps, axes, path)

    def load(number: int) -> KspaceSlice:
        values = read_kspace(number)
        own_maps = None if read_maps is None else plan.apply_to_image(read_maps(number))
        sampled = plan.apply_mask(measured_samples(values))
        return KspaceSlice(plan.apply(values), sampled, maps=own_maps)

    dataset = KspaceDataset(
        modality="MR",
        description=path.name,
        count=count,
        image_size=(plan.rows, plan.columns),
        pixel_mm=plan.pixel_mm,
        files=(path,),
        facts=plan.facts,
        warnings=plan.warnings,
        coils=coils,
        coil_use=options.coil_use or "sense",
        crop_size=plan.crop,
        load_slice=load,
    )
    dataset.add_fact("axes", ",".join(axes), origin)
    dataset.add_fact("coils", coils, "shape of the array")
    dataset.add_fact("zero frequency", "at the middle (N // 2) of each axis", "assumed")
    dataset.add_fact("sampling", "lines of zeros were not measured", "assumed")
    return dataset


def _axes_of(array: np.ndarray, path: Path, options: InputOptions) -> tuple[tuple[str, ...], str]:
    is_complex, shape = array.dtype.kind == "c", array.shape
    if array.dtype.kind not in "cfiu" or 0 in shape:
        raise RequestError(f"{path} holds {array.dtype} {shape}: no k-space.")
    if options.axes is not None:
        return _named_axes(options.axes, shape, is_complex, path), "option"
    if not is_complex:
        raise RequestError(
            f"{path} holds real numbers {shape}: name its axes, with 'complex' for the axis of "
            "real and imaginary parts (⟦axes⟧ slice,read,phase,complex)."
        )
    if len(shape) >= 2 and all(n == 1 for n in shape[:-2]) and len(shape) <= 4:
        names = ("slice", "coil")[: len(shape) - 2]
        return (*names, "read", "phase"), "assumed: the last axis is phase encoding"
    orders = EXAMPLES.get(len(shape), EXAMPLES[4])
    examples = " or ".join(f"⟦axes⟧ {text}" for text in orders)
    raise DescriptionNeeded(
        f"{path} holds {shape} numbers in an unknown order: say {examples}.", ("axes",), orders
    )


def _named_axes(text: str, shape: tuple[int, ...], is_complex: bool, path: Path) -> tuple[str, ...]:
    axes = tuple(name.strip().lower() for name in text.split(","))
    unknown = [name for name in axes if name not in NAMES]
    if unknown or len(set(axes)) != len(axes):
        raise RequestError(f"⟦axes⟧ '{text}': name each of {', '.join(NAMES)} once at most.")
    if len(axes) != len(shape):
        raise RequestError(f"⟦axes⟧ '{text}' names {len(axes)} axes; {path} has {len(shape)}.")
    if "read" not in axes or "phase" not in axes:
        raise RequestError(f"⟦axes⟧ '{text}' must name 'read' and 'phase'.")
    if is_complex == ("complex" in axes):
        wrong = "must not name 'complex'" if is_complex else "must name 'complex'"
        raise RequestError(f"⟦axes⟧ '{text}' {wrong}: {path} holds {_kind(is_complex)} numbers.")
    if not is_complex and shape[axes.index("complex")] != 2:
        raise RequestError(f"{path}: the 'complex' axis has {shape[axes.index('complex')]} parts.")
    return axes


def _kind(is_complex: bool) -> str:
    return "complex" if is_complex else "real"


def _reader(array: np.ndarray, axes: tuple[str, ...], path: Path) -> Callable[[int], Kspace]:
    """Reads one slice as complex64 [coil, read, phase], whatever the order in the array."""
    rest = [name for name in axes if name != "slice"]
    wanted = [name for name in ("coil", "read", "phase", "complex") if name in rest]
    order = [rest.index(name) for name in wanted]
    slice_axis = axes.index("slice") if "slice" in axes else None

    def read(number: int) -> Kspace:
        index = tuple(number if axis == slice_axis else slice(None) for axis in range(len(axes)))
        try:
            values = np.asarray(array[index]).transpose(order)
        except (OSError, IndexError, ValueError) as error:
            raise RequestError(f"{path}: slice {number} cannot be read.") from error
        if "complex" in rest:
            values = values[..., 0] + 1j * values[..., 1].astype(np.float64)
        values = np.array(values, dtype=np.complex64, order="C")  # never a view of the file
        return values if "coil" in rest else values[None]

    return read


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
