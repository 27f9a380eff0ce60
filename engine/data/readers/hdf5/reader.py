"""Looks into an HDF5 file and picks the reader: by what is inside, not by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from engine.data.dataset import Dataset
from engine.data.readers.arrays import choose, open_array
from engine.data.readers.hdf5 import safe as hdf5_safe
from engine.data.readers.hdf5.mat73 import Mat73, is_complex
from engine.data.readers.hdf5.safe import item, open_h5
from engine.data.readers.kspace.fastmri import open_fastmri
from engine.data.readers.kspace.ismrmrd import groups_of, open_ismrmrd
from engine.data.sidecar import describe
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

MAX_DEPTH = 6


def open_hdf5(path: Path, options: InputOptions) -> Dataset:
    """Links into other files are followed only where the person allows it.

    The files they lead to belong to the input: its hash covers them, too.
    """
    with hdf5_safe.allow(options.allow_links) as links:
        dataset = _open(path, options)
    dataset.files = (*dataset.files, *(one for one in links if one not in dataset.files))
    return dataset


def _open(path: Path, options: InputOptions) -> Dataset:
    described = describe(path, options)
    with hdf5_safe.open_h5(path) as file:
        layout = _layout(file)
        if described.options.dataset is not None and layout != "run":
            # an array by its name; for k-space it may also name a whole measurement
            named = hdf5_safe.item(file, described.options.dataset)
            if layout != "kspace" or isinstance(named, h5py.Dataset):
                layout = "array"
        structs = _fips_structs(file) if layout == "other" else []
    if layout == "run":
        from engine.data.readers.hdf5.run_file import open_run_h5

        return open_run_h5(path, options)
    if layout == "kspace":
        return open_kspace_h5(path, options)
    if layout == "exchange":
        from engine.data.readers.hdf5.tomography import open_data_exchange

        return open_data_exchange(path, options)
    if layout == "nxtomo":
        from engine.data.readers.hdf5.tomography import open_nxtomo

        return open_nxtomo(path, options)
    if structs:
        from engine.data.readers.fips import open_fips

        return open_fips(path, options, structs, partial(open_hdf5, path))
    return _open_named(path, options, described.options)


def _layout(file: h5py.File) -> str:
    from engine.data.readers.hdf5.run_file import is_run_h5
    from engine.data.readers.hdf5.tomography import find_detector

    if is_run_h5(file):
        return "run"
    if is_kspace_h5(file):
        return "kspace"
    if "exchange" in set(file.keys()):  # `in file` would follow links
        return "exchange"
    return "nxtomo" if find_detector(file) is not None else "other"


def _fips_structs(file: h5py.File) -> list[dict[str, Any]]:
    """MATLAB 7.3 only: its first 512 bytes are MATLAB's own."""
    from engine.data.readers.fips import find_structs

    if file.userblock_size < 512 and not any("MATLAB_class" in o.attrs for _, o in _some(file)):
        return []
    return find_structs(Mat73(file).variables())


def _some(file: h5py.File) -> Iterator[tuple[str, Any]]:
    for _, (name, node) in zip(range(20), children(file), strict=False):
        yield name, node


def children(group: h5py.Group) -> Iterator[tuple[str, h5py.Group | h5py.Dataset]]:
    """What really lies in the group; links to elsewhere are passed over."""
    for name in list(group.keys())[: hdf5_safe.MAX_ITEMS]:
        if hdf5_safe.lies_inside(group, name) or hdf5_safe.allowed() is not None:
            node = hdf5_safe.item(group, name)
            if isinstance(node, h5py.Group | h5py.Dataset):
                yield name, node


class StoredArray:
    """An array that is read from its file each time; no file stays open in between."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.links = hdf5_safe.allowed()
        with self._dataset() as dataset:
            self.shape: tuple[int, ...] = dataset.shape
            self.dtype: np.dtype = dataset.dtype

    @contextmanager
    def _dataset(self) -> Iterator[h5py.Dataset]:
        with hdf5_safe.allow(self.links), hdf5_safe.open_h5(self.path) as file:
            dataset = hdf5_safe.array(file, self.name)
            if dataset is None:
                raise RequestError(f"{self.path.name} has no array '{self.name}'.")
            yield dataset

    def __getitem__(self, index: Any) -> np.ndarray:
        with self._dataset() as dataset:
            return hdf5_safe.read(dataset, index)


def _open_named(path: Path, options: InputOptions, said: InputOptions) -> Dataset:
    """An array of no known layout; ``said`` are the options with those of the sidecar."""
    stored: Any = None
    with hdf5_safe.open_h5(path) as file:
        if said.dataset is not None:
            hdf5_safe.item(file, said.dataset)  # a link to elsewhere is named as such
        name = choose(path, dict(_arrays(file, MAX_DEPTH)), said)
        if any("MATLAB_class" in node.attrs for _, node in _some(file)):
            stored = Mat73(file).value(file[name], 0)
    stored = StoredArray(path, name) if stored is None else stored
    return open_array(stored, path, options, partial(open_hdf5, path))


def _arrays(file: h5py.File, depth: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each array once, by its shortest name; hard links may form circles."""
    level, seen = [("", file)], {hdf5_safe.address(file)}
    for _ in range(depth + 1):
        inner: list[tuple[str, Any]] = []
        for prefix, group in level:
            for name, node in children(group):
                if (address := hdf5_safe.address(node)) in seen:
                    continue
                seen.add(address)
                if isinstance(node, h5py.Group):
                    inner.append((f"{prefix}{name}/", node))
                elif node.shape is not None and (node.dtype.kind in "fiuc" or is_complex(node)):
                    yield f"{prefix}{name}", node.shape
        level = inner


def is_kspace_h5(file: h5py.File) -> bool:
    """Whether an open file is one that `open_kspace_h5` reads."""
    return isinstance(item(file, "kspace"), h5py.Dataset) or bool(groups_of(file))


def open_kspace_h5(path: Path, options: InputOptions) -> Dataset:
    with open_h5(path) as file:
        is_fastmri = isinstance(item(file, "kspace"), h5py.Dataset)
        is_ismrmrd = bool(groups_of(file))
    if options.axes is not None and (is_fastmri or is_ismrmrd):
        raise RequestError(f"{path}: the format fixes its axes; ⟦axes⟧ does not apply.")
    if is_fastmri:
        return open_fastmri(path, options)
    if is_ismrmrd:
        return open_ismrmrd(path, options)
    raise RequestError(
        f"{path} is neither a fastMRI file (no 'kspace' array) nor an ISMRMRD one "
        "(no group with 'xml' and 'data')."
    )
