"""BART's ``.cfl`` / ``.hdr`` pairs: a text with the dimensions, and raw complex64 beside it.

A plane lies in dimensions 0 and 1, or in 1 and 2 when both are phase encodings (one readout
sample of a 3-D scan). Non-Cartesian data are stored in 1 and 2, too: there every line of
dimension 2 is a spoke through the centre, and has about the same energy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.data.dataset import Dataset
from engine.data.kspace.spokes import SpokesDataset, SpokesSlice
from engine.data.kspace.trajectory import make_trajectory
from engine.data.readers.file_array import FileArray
from engine.data.readers.kspace.arrays import open_kspace_array, open_maps
from engine.data.readers.kspace.spokes import find_trajectory, make_dataset
from engine.files.budget import read_small
from engine.files.path_safety import check_regular
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

READ, PHASE, PARTITION, COIL, MAPS, SLICE = 0, 1, 2, 3, 4, 13
NAMES = {4: "sets of maps", 5: "echoes", 10: "time frames", 14: "averages"}
MAX_HEADER_BYTES = 1 << 16
KEPT = (READ, PHASE, PARTITION, COIL, SLICE)
# Energy of the strongest line over that of a usual one: of spokes about 1, of lines 20 and more.
UNEVEN = 4.0


def open_bart(path: Path, options: InputOptions) -> Dataset:
    """K-space; ``options.dataset`` names a pair in the same folder that holds the coil maps."""
    if options.kind not in (None, "kspace"):
        raise RequestError(f"{path}: BART files are read as k-space, not as {options.kind}.")

    if options.trajectory is not None:
        return open_bart_spokes(path, options, "option")
    if (beside := trajectory_beside(path)) is not None:
        return open_bart_spokes(path, replace(options, trajectory=beside), "beside the data")
    values, dims = _checked_pair(path)
    warnings: list[str] = []
    maps = None
    files = [*_pair(path)]
    lazy = options.axes is None and _by_slices(dims)
    if lazy:
        _warn_of_rest(dims, path, warnings)
    else:
        array = _first_of_rest(open_pair(path), path, warnings)
    if options.dataset is not None:
        companion = _companion(path, options.dataset)
        maps = _first_of_rest(open_pair(companion), companion, warnings)
        files += _pair(companion)
    if options.axes is not None:  # of the dimensions that have more than one entry
        array, maps = array.squeeze(), None if maps is None else maps.squeeze()
        dataset = open_kspace_array(array, path, options, maps)
    else:
        if not lazy:
            _check_cartesian(array, path)
        volume: Volume = StoredSlices(values, dims) if lazy else _arranged(array, path)
        map_volume = None if maps is None else _arranged_maps(maps, volume, path)
        said = replace(options, axes="read,phase,coil,slice")
        dataset = open_kspace_array(volume, path, said, map_volume)  # type: ignore[arg-type]
        dataset.facts = [fact for fact in dataset.facts if fact.name != "axes"]
        dataset.add_fact("plane", _plane(volume, dims), "the dimensions that were measured")
    dataset.files = tuple(files)
    dataset.add_fact("format", f"BART, dimensions {dims}", "hdr")
    dataset.warnings += warnings
    return dataset


def open_pair(path: Path) -> np.ndarray:
    """The array of a pair, read whole; its size is checked against the header before."""
    values, dims = _checked_pair(path)
    return np.asarray(FileArray(values, np.dtype("<c8"), tuple(dims), fortran=True))


class StoredSlices:
    """[read, phase, coil, slice] of a pair, read when asked for.

    Of every other dimension the first entry is taken: what is left of a slice lies together.
    """

    def __init__(self, values: Path, dims: list[int]) -> None:
        self.values, self.dtype = values, np.dtype("<c8")
        self.shape = (dims[READ], dims[PHASE], dims[COIL], dims[SLICE])
        self._step = 8 * math.prod(dims[:SLICE])

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        *rest, number = index
        offset = range(self.shape[-1])[number] * self._step
        one = FileArray(self.values, self.dtype, self.shape[:3], offset, fortran=True)
        return np.asarray(one)[tuple(rest)]


def _by_slices(dims: list[int]) -> bool:
    """Whether a slice needs nothing of the others: no partitions, no readout to be cut up."""
    return dims[PARTITION] == 1 and min(dims[READ], dims[PHASE]) > 1


def _checked_pair(path: Path) -> tuple[Path, list[int]]:
    header, values = _pair(path)
    dims = _dimensions(header)
    check_regular(values)
    try:
        size = values.stat().st_size
    except OSError as error:
        raise RequestError(f"{values} does not exist or may not be read.") from error
    if size != 8 * math.prod(dims):
        raise RequestError(
            f"{values} has {size} bytes; its header's dimensions need {8 * math.prod(dims)}."
        )
    return values, dims


def _pair(path: Path) -> tuple[Path, Path]:
    base = path.with_suffix("") if path.suffix.lower() in (".cfl", ".hdr") else path
    header, values = (base.parent / (base.name + suffix) for suffix in (".hdr", ".cfl"))
    if path.suffix.lower() == ".hdr" and not values.exists():
        raise RequestError(f"{path}: there is no {values.name} beside it, so it is no BART header.")
    return header, values


def _dimensions(header: Path) -> list[int]:
    try:
        text = read_small(header, MAX_HEADER_BYTES, "a BART header").decode("utf-8", "replace")
    except OSError as error:
        raise RequestError(f"{header} does not exist or may not be read.") from error
    lines = text.splitlines()
    titles = [line.strip() for line in lines]
    if "# Dimensions" not in titles or titles.index("# Dimensions") + 1 >= len(lines):
        raise RequestError(f"{header} has no dimensions: it is no BART header.")
    words = lines[titles.index("# Dimensions") + 1].split()
    plain = all(w.isascii() and w.isdigit() and len(w) <= 12 for w in words)
    if not 1 <= len(words) <= 16 or not plain:
        raise RequestError(f"{header}: its dimensions are not up to 16 whole numbers.")
    dims = [int(word) for word in words]
    if min(dims) < 1 or math.prod(dims) > 1 << 40:
        raise RequestError(f"{header}: its dimensions {dims} are impossible.")
    return dims + [1] * (16 - len(dims))


def _companion(path: Path, name: str) -> Path:
    if Path(name).name != name or name in ("", ".", ".."):
        raise RequestError(f"⟦dataset⟧ '{name}' must name coil maps in the folder of {path.name}.")
    return path.parent / name


def _check_cartesian(array: np.ndarray, path: Path) -> None:
    size = array.shape[:3]
    if sum(n > 1 for n in size) < 2 or size[PHASE] < 2:
        raise RequestError(f"{path}: dimensions {list(size)} hold no k-space plane.")
    if size[READ] > 1:
        return
    lines = np.square(np.abs(array)).sum(axis=(0, 1, 3, 4))
    measured = lines[lines > 0]
    if not measured.size or measured.max() < UNEVEN * np.median(measured):
        raise RequestError(
            f"{path} seems to hold {size[PARTITION]} spokes of {size[PHASE]} samples, for each "
            "has the same energy: as non-Cartesian k-space it needs its positions (⟦trajectory⟧ "
            "FILE). If it is Cartesian, name its axes (⟦axes⟧ read,phase,coil)."
        )


def _first_of_rest(data: np.ndarray, path: Path, warnings: list[str]) -> np.ndarray:
    """[read, phase, partition, coil, slice]; of every other dimension the first entry."""
    _warn_of_rest(data.shape, path, warnings)
    index = tuple(slice(None) if axis in KEPT else 0 for axis in range(data.ndim))
    return data[index]


def _warn_of_rest(dims: Sequence[int], path: Path, warnings: list[str]) -> None:
    for axis, n in enumerate(dims):
        if axis not in KEPT and n > 1:
            name = NAMES.get(axis, f"entries of dimension {axis}")
            warnings.append(f"{path.name} holds {n} {name}; the first is used.")


def _arranged(array: np.ndarray, path: Path) -> np.ndarray | PartitionedKspace:
    """[read, phase, coil, slice]: what a 3-D scan is fully sampled along becomes slices."""
    read, _, partitions, _, slices = array.shape
    if partitions == 1:
        return array[:, :, 0]
    if slices > 1:
        raise RequestError(f"{path} holds {slices} slabs of {partitions} partitions: give one.")
    volume = array[..., 0].transpose(0, 1, 3, 2)  # [read, phase, coil, partition]
    if read == 1:
        return volume.transpose(1, 3, 2, 0)
    if _same_lines(volume):
        return PartitionedKspace(volume)
    # Undersampled in both phase directions, so that the readout is what gives slices.
    return PartitionedKspace(volume.transpose(1, 3, 2, 0))


def _arranged_maps(maps: np.ndarray, volume: Volume, path: Path) -> np.ndarray:
    """Maps in the order of ``volume``: they live in image space, where nothing is transformed."""
    flat = maps[..., 0].transpose(0, 1, 3, 2) if maps.shape[4] == 1 else maps[:, :, 0]
    for ordered in (flat, flat.transpose(1, 3, 2, 0)):
        if ordered.shape == volume.shape:
            return ordered
    raise RequestError(f"{path}: maps of {maps.shape} do not fit its data.")


def _plane(volume: Volume, dims: list[int]) -> str:
    second = volume.shape[:2] == tuple(dims[1:3]) and dims[PARTITION] > 1
    return "dimensions 1 and 2, both phase encodings" if second else "dimensions 0 and 1"


def _same_lines(volume: np.ndarray) -> bool:
    """The same lines in all partitions, judged by the samples around the middle row."""
    middle = volume.shape[0] // 2
    lines = (volume[max(middle - 1, 0) : middle + 2] != 0).any(axis=(0, 2))
    return bool((lines.all(axis=1) == lines.any(axis=1)).all())


class PartitionedKspace:
    """3-D k-space [read, phase, coil, partition] that gives slices when indexed.

    The partition direction is fully sampled; its inverse transform is then exact. One slice
    needs the whole file, a plane at a time.
    """

    def __init__(self, volume: np.ndarray) -> None:
        self.volume = volume
        self.shape, self.dtype = volume.shape, volume.dtype

    def __getitem__(self, index: tuple[object, ...]) -> np.ndarray:
        z, n = index[-1], self.shape[-1]
        if not isinstance(z, int) or not 0 <= z < n:
            raise IndexError(z)
        wave = np.exp(2j * np.pi * (np.arange(n) - n // 2) * (z - n // 2) / n) / math.sqrt(n)
        total = np.zeros(self.shape[:-1], dtype=np.complex64)
        for k in range(n):
            total += self.volume[..., k] * np.complex64(wave[k])
        return total


Volume = np.ndarray | PartitionedKspace | StoredSlices
BESIDE = ("traj", "trj", "trajectory")


def trajectory_beside(path: Path) -> str | None:
    """A pair of a usual name whose positions fit the samples of ``path``."""
    stem = _pair(path)[0].stem
    wanted = _dimensions(_pair(path)[0])[1:3]
    for name in (*(f"{stem}_{end}" for end in BESIDE), *BESIDE):
        header = path.parent / f"{name}.hdr"
        if name != stem and header.is_file() and _dimensions(header)[:3] == [3, *wanted]:
            return f"{name}.cfl"
    return None


def open_bart_spokes(path: Path, options: InputOptions, origin: str) -> SpokesDataset:
    """With the trajectory ``options.trajectory``; ``options.dataset`` names a pair of coil maps."""
    if options.axes is not None:
        raise RequestError(f"{path}: a BART header fixes the axes; ⟦axes⟧ does not apply.")
    data = open_pair(path)
    found = find_trajectory(path, options)
    assert found is not None
    positions, source = found
    if data.shape[:3] != (1, *positions.shape[1:]):
        raise RequestError(
            f"{path} holds samples {list(data.shape[:4])}; a trajectory of {positions.shape[1]} x "
            f"{positions.shape[2]} positions does not fit them."
        )
    trajectory = make_trajectory(positions.swapaxes(1, 2), options, source.name)

    def load(number: int) -> SpokesSlice:
        index = tuple(number if axis == SLICE else 0 for axis in range(4, 16))
        samples = data[0][(..., *index)].transpose(2, 1, 0)
        return SpokesSlice(np.array(samples, np.complex64, order="C"), trajectory)

    coils, count = data.shape[COIL], data.shape[SLICE]
    dataset = make_dataset(path, options, trajectory, load, coils, count)
    dataset.files = (
        *_pair(path),
        *(_pair(source) if source.suffix in (".cfl", ".hdr") else (source,)),
    )
    if options.dataset is not None:
        maps = _companion(path, options.dataset)
        pair = _pair(maps)
        dataset.given_maps = open_maps(pair[1], count, coils, dataset.image_size)
        dataset.files = (*dataset.files, *pair)
    dataset.add_fact("format", f"BART, dimensions {list(data.shape)}", "hdr")
    dataset.add_fact("positions", source.name, origin)
    for axis, n in enumerate(data.shape):
        if axis > COIL and axis != SLICE and n > 1:
            name = NAMES.get(axis, f"entries of dimension {axis}")
            dataset.warn(f"{path.name} holds {n} {name}; the first is used.")
    return dataset
