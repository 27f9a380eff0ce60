"""BART's ``.cfl`` / ``.hdr`` pairs: a text with the dimensions, and raw complex64 beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.data.input_options import InputOptions
from engine.data.kspace import KspaceDataset
from engine.data.readers.file_array import FileArray
from engine.data.readers.kspace_array import open_kspace_array
from engine.errors import RequestError

READ, PHASE, PARTITION, COIL, MAPS, SLICE = 0, 1, 2, 3, 4, 13
NAMES = {4: "sets of maps", 5: "echoes", 10: "time frames", 14: "averages"}
MAX_HEADER_BYTES = 1 << 16


def open_bart(path: Path, options: InputOptions) -> KspaceDataset:
    """K-space; ``options.dataset`` names a pair in the same folder that holds the coil maps."""
    if options.kind not in (None, "kspace"):
        raise RequestError(f"{path}: BART files are read as k-space, not as {options.kind}.")
    if options.axes is not None:
        raise RequestError(f"{path}: a BART header fixes the axes; --axes does not apply.")
    data = open_pair(path)
    _check_cartesian(data, path)
    warnings: list[str] = []
    maps = None
    files = [*_pair(path)]
    if options.dataset is not None:
        companion = _companion(path, options.dataset)
        maps = _first_of_rest(open_pair(companion), companion, warnings)
        files += _pair(companion)
    array = _first_of_rest(data, path, warnings)
    volume, axes = _arranged(array, path, is_kspace=True)
    map_volume = None if maps is None else _arranged(maps, path, is_kspace=False)[0]
    dataset = open_kspace_array(volume, path, replace(options, axes=axes), map_volume)
    dataset.files = tuple(files)
    dataset.facts = [fact for fact in dataset.facts if fact.name != "axes"]
    dataset.add_fact("format", f"BART, dimensions {list(data.shape)}", "hdr")
    dataset.warnings += warnings
    return dataset


def open_pair(path: Path) -> np.ndarray:
    """The array of a pair, read whole; its size is checked against the header before."""
    header, values = _pair(path)
    dims = _dimensions(header)
    try:
        size = values.stat().st_size
    except OSError as error:
        raise RequestError(f"{values} does not exist or may not be read.") from error
    if size != 8 * math.prod(dims):
        raise RequestError(
            f"{values} has {size} bytes; its header's dimensions need {8 * math.prod(dims)}."
        )
    return np.asarray(FileArray(values, np.dtype("<c8"), tuple(dims), fortran=True))


def _pair(path: Path) -> tuple[Path, Path]:
    base = path.with_suffix("") if path.suffix.lower() in (".cfl", ".hdr") else path
    header, values = (base.parent / (base.name + suffix) for suffix in (".hdr", ".cfl"))
    if path.suffix.lower() == ".hdr" and not values.exists():
        raise RequestError(f"{path}: there is no {values.name} beside it, so it is no BART header.")
    return header, values


def _dimensions(header: Path) -> list[int]:
    try:
        if header.stat().st_size > MAX_HEADER_BYTES:
            raise RequestError(f"{header} is too long for a BART header.")
        lines = header.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise RequestError(f"{header} does not exist or may not be read.") from error
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
        raise RequestError(f"--dataset '{name}' must name coil maps in the folder of {path.name}.")
    return path.parent / name


def _check_cartesian(data: np.ndarray, path: Path) -> None:
    if data.shape[READ] == 1 and data.shape[PHASE] > 1 and data.shape[PARTITION] > 1:
        raise RequestError(
            f"{path} holds {data.shape[PARTITION]} spokes of {data.shape[PHASE]} samples: "
            "non-Cartesian k-space is not supported."
        )
    if min(data.shape[READ], data.shape[PHASE]) < 2:
        raise RequestError(f"{path}: dimensions {list(data.shape)} hold no k-space plane.")


def _first_of_rest(data: np.ndarray, path: Path, warnings: list[str]) -> np.ndarray:
    """[read, phase, partition, coil, slice]; of every other dimension the first entry."""
    kept = (READ, PHASE, PARTITION, COIL, SLICE)
    for axis, n in enumerate(data.shape):
        if axis not in kept and n > 1:
            name = NAMES.get(axis, f"entries of dimension {axis}")
            warnings.append(f"{path.name} holds {n} {name}; the first is used.")
    index = tuple(slice(None) if axis in kept else 0 for axis in range(data.ndim))
    return data[index]


def _arranged(array: np.ndarray, path: Path, *, is_kspace: bool) -> tuple[np.ndarray, str]:
    """The array with one axis of slices; partitions of a 3-D scan become slices."""
    partitions, slices = array.shape[2], array.shape[4]
    if partitions == 1:
        return array[:, :, 0], "read,phase,coil,slice"
    if slices > 1:
        raise RequestError(f"{path} holds {slices} slabs of {partitions} partitions: give one.")
    volume = array[..., 0].transpose(0, 1, 3, 2)  # partition last, as slices are
    if not is_kspace:
        return volume, "read,phase,coil,slice"
    return PartitionedKspace(volume, path), "read,phase,coil,slice"  # type: ignore[return-value]


class PartitionedKspace:
    """3-D k-space [read, phase, coil, partition] that gives slices when indexed.

    The partition direction must be fully sampled; its inverse transform is then exact. One
    slice needs the whole file, a plane at a time.
    """

    def __init__(self, volume: np.ndarray, path: Path) -> None:
        self.volume, self.path = volume, path
        self.shape, self.dtype = volume.shape, volume.dtype
        self._checked = False

    def __getitem__(self, index: tuple[object, ...]) -> np.ndarray:
        z, n = index[-1], self.shape[-1]
        if not isinstance(z, int) or not 0 <= z < n:
            raise IndexError(z)
        self._check()
        wave = np.exp(2j * np.pi * (np.arange(n) - n // 2) * (z - n // 2) / n) / math.sqrt(n)
        total = np.zeros(self.shape[:-1], dtype=np.complex64)
        for k in range(n):
            total += self.volume[..., k] * np.complex64(wave[k])
        return total

    def _check(self) -> None:
        """The same lines in all partitions, judged by the samples around the middle row."""
        if self._checked:
            return
        middle = self.shape[0] // 2
        lines = (self.volume[max(middle - 1, 0) : middle + 2] != 0).any(axis=(0, 2))
        if not (lines.all(axis=1) == lines.any(axis=1)).all():
            raise RequestError(
                f"{self.path} is undersampled along its partitions (dimension 2); only 3-D scans "
                "fully sampled there can be split into slices."
            )
        self._checked = True
