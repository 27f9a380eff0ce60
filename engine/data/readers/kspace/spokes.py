"""Radial and spiral k-space as arrays: the samples, and beside them or in them a trajectory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from engine.data.kspace.spokes import Samples, SpokesDataset, SpokesSlice
from engine.data.kspace.trajectory import (
    Positions,
    Trajectory,
    make_trajectory,
    readouts_last,
    two_components,
)
from engine.data.readers.hdf5.safe import open_h5
from engine.data.readers.volumes.slices import Indexable
from engine.files.path_safety import check_regular
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.spec.input_options import InputOptions

AXES = ("slice", "coil", "spoke", "sample", "complex")
NAMES = ("trajectory", "traj", "trj", "coord", "coords")
MAX_SLICE_BYTES = 1 << 30
EXAMPLES = ("coil,spoke,sample", "spoke,sample,coil", "slice,coil,spoke,sample")

Reader = Callable[[], Any]


def find_trajectory(path: Path, options: InputOptions) -> tuple[Positions, Path] | None:
    """The trajectory that was named, or one of a usual name in the file; and where it was."""
    wanted, own = options.trajectory, _arrays_of(path)
    for name in NAMES if wanted is None else (wanted.strip("/"),):
        if name in own:
            return two_components(np.asarray(own[name]()), f"{path.name}, '{name}'"), path
    if wanted is None:
        return None
    beside = path.parent / wanted
    file = beside if beside.is_file() else Path(wanted)
    if not file.is_file():
        raise RequestError(
            f"⟦trajectory⟧ {wanted} is neither an array of {path.name} nor a file that exists."
        )
    check_regular(file)
    return two_components(_only_array(file), file.name), file


def _only_array(file: Path) -> np.ndarray:
    if file.suffix.lower() == ".npy":
        from engine.data.readers.npy import read_npy

        return np.asarray(read_npy(file))
    if file.suffix.lower() in (".cfl", ".hdr"):
        from engine.data.readers.kspace.bart import open_pair

        return open_pair(file).real[..., 0].squeeze()
    arrays = _arrays_of(file)
    named = [name for name in NAMES if name in arrays]
    if not named and len(arrays) != 1:
        raise RequestError(
            f"⟦trajectory⟧ {file.name}: give a .npy or .cfl file, or one with an array called "
            f"{' or '.join(NAMES[:2])}."
        )
    return np.asarray(arrays[named[0] if named else next(iter(arrays))]())


def _arrays_of(path: Path) -> dict[str, Reader]:
    """How to read the arrays of a file that may hold several, by name."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        from engine.data.readers.npy import npz_names, read_npz

        return {name: partial(read_npz, path, name) for name in npz_names(path)}
    if suffix == ".mat":
        from engine.data.readers.mat5 import is_hdf5, read_mat5

        if not is_hdf5(path):
            found = {k: v for k, v in read_mat5(path).items() if isinstance(v, np.ndarray)}
            return {name: partial(np.asarray, value) for name, value in found.items()}
    elif suffix not in (".h5", ".hdf5"):
        return {}
    from engine.data.readers.hdf5.reader import MAX_DEPTH, _arrays

    with open_h5(path) as file:
        names = [name for name, _ in _arrays(file, MAX_DEPTH)]
    return {name: partial(_stored, path, name) for name in names}


def _stored(path: Path, name: str) -> np.ndarray:
    from engine.data.readers.hdf5.mat73 import Mat73
    from engine.data.readers.hdf5.reader import StoredArray

    with open_h5(path) as file:
        node = file[name]
        if isinstance(node, h5py.Dataset) and "MATLAB_class" in node.attrs:
            return np.asarray(Mat73(file).value(node, 0))
    return np.asarray(StoredArray(path, name)[()])


def open_spokes_array(
    array: Indexable,
    found: tuple[Positions, Path],
    path: Path,
    options: InputOptions,
    maps: np.ndarray | None = None,
) -> SpokesDataset:
    """``array`` may be any object with shape, dtype and slicing; read per slice."""
    positions, source = found
    if array.dtype.kind not in "cfiu" or 0 in array.shape:
        raise RequestError(f"{path} holds {array.dtype} {array.shape}: no k-space.")
    axes = _axes_of(array, positions.shape[1:], path, options)
    read = _reader(array, axes, path)
    turned = not readouts_last(positions)
    if options.axes is not None:
        wanted = tuple(array.shape[axes.index(name)] for name in ("spoke", "sample"))
        turned = positions.shape[1:] != wanted
        if positions.shape[1:] not in (wanted, wanted[::-1]):
            raise RequestError(
                f"{path}: {wanted[0]} spokes of {wanted[1]} samples, but a trajectory of "
                f"{positions.shape[1]} x {positions.shape[2]}."
            )
    trajectory = make_trajectory(
        positions.swapaxes(1, 2) if turned else positions, options, source.name
    )
    swap = turned and options.axes is None

    def load(number: int) -> SpokesSlice:
        samples = read(number)
        samples = np.ascontiguousarray(samples.swapaxes(1, 2)) if swap else samples
        return SpokesSlice(samples, trajectory, maps)

    sizes = dict(zip(axes, array.shape, strict=True))
    dataset = make_dataset(
        path, options, trajectory, load, sizes.get("coil", 1), sizes.get("slice", 1)
    )
    dataset.files = tuple(dict.fromkeys((path, source)))
    dataset.add_fact("axes", ",".join(a for a in axes if a), "option" if options.axes else "sizes")
    return dataset


def make_dataset(
    path: Path,
    options: InputOptions,
    trajectory: Trajectory,
    load: Callable[[int], SpokesSlice],
    coils: int,
    count: int,
    pixel_mm: float | None = None,
) -> SpokesDataset:
    spokes, samples = trajectory.positions.shape[1:]
    if coils * spokes * samples * 8 > MAX_SLICE_BYTES:
        raise RequestError(f"{path}: slices of {coils} x {spokes} x {samples} are too large.")
    pixel = options.pixel_mm or pixel_mm
    dataset = SpokesDataset(
        modality="MR",
        description=path.name,
        count=count,
        image_size=(trajectory.size, trajectory.size),
        pixel_mm=None if pixel is None else (pixel, pixel),
        files=(path,),
        facts=list(trajectory.facts),
        coils=coils,
        coil_use=options.coil_use or "sense",
        load_slice=load,
    )
    dataset.add_fact("coils", coils, "the file")
    if pixel is not None:
        origin = "option" if options.pixel_mm else "field of view in the header"
        dataset.add_fact("pixel", f"{pixel:.4g} mm", origin)
    return dataset


def _axes_of(
    array: Indexable, plane: tuple[int, ...], path: Path, options: InputOptions
) -> tuple[str, ...]:
    """A name for each axis; '' for those of one entry. The plane is that of the trajectory."""
    shape = tuple(array.shape)
    if options.axes is not None:
        return _named(options.axes, shape, path)
    if array.dtype.kind != "c":
        raise _which(path, shape)
    kept = [axis for axis, n in enumerate(shape) if n > 1]
    wanted = [n for n in plane if n > 1]
    names = [""] * len(shape)
    for start in range(len(kept) - len(wanted), -1, -1):
        run = kept[start : start + len(wanted)]
        rest = [axis for axis in kept if axis not in run]
        if [shape[axis] for axis in run] == wanted and len(rest) <= 1:
            for axis, name in zip(run, ("spoke", "sample")[2 - len(wanted) :], strict=True):
                names[axis] = name
            for axis in rest:
                names[axis] = "coil"
            return tuple(names)
    if sorted(n for n in shape if n > 1 and n in plane) != sorted(wanted):
        raise RequestError(
            f"{path} holds {shape} numbers, which do not fit a trajectory of {plane[0]} x "
            f"{plane[1]} positions."
        )
    raise _which(path, shape)


def _which(path: Path, shape: tuple[int, ...]) -> RequestError:
    examples = " or ".join(f"⟦axes⟧ {text}" for text in EXAMPLES)
    return DescriptionNeeded(
        f"{path} holds {shape} numbers in an unknown order: say {examples}.", ("axes",), EXAMPLES
    )


def _named(text: str, shape: tuple[int, ...], path: Path) -> tuple[str, ...]:
    axes = tuple(name.strip().lower() for name in text.split(","))
    if [a for a in axes if a not in AXES] or len(set(axes)) != len(axes):
        raise RequestError(f"⟦axes⟧ '{text}': name each of {', '.join(AXES)} once at most.")
    if len(axes) != len(shape):
        raise RequestError(f"⟦axes⟧ '{text}' names {len(axes)} axes; {path} has {len(shape)}.")
    if not {"spoke", "sample"} <= set(axes):
        raise RequestError(f"⟦axes⟧ '{text}' must name 'spoke' and 'sample'.")
    return axes


def _reader(array: Indexable, axes: tuple[str, ...], path: Path) -> Callable[[int], Samples]:
    """Reads one slice as complex64 ``[coil, spoke, sample]``, whatever the order in the array."""
    rest = [name for name in axes if name not in ("", "slice")]
    order = [rest.index(name) for name in AXES if name in rest]
    is_complex = array.dtype.kind == "c"
    if is_complex == ("complex" in axes):
        raise RequestError(f"{path}: name a 'complex' axis of 2 parts for real numbers, and only.")

    def read(number: int) -> Samples:
        index = tuple(
            number if name == "slice" else 0 if name == "" else slice(None) for name in axes
        )
        try:
            values = np.asarray(array[index]).transpose(order)
        except (OSError, IndexError, ValueError) as error:
            raise RequestError(f"{path}: slice {number} cannot be read.") from error
        if not is_complex:
            if values.shape[-1] != 2:
                raise RequestError(f"{path}: its 'complex' axis has {values.shape[-1]} parts.")
            values = values[..., 0] + 1j * values[..., 1].astype(np.float64)
        values = values[None] if "coil" not in rest else values
        values = values[:, None] if "spoke" not in rest else values
        return np.array(values, dtype=np.complex64, order="C")

    return read
