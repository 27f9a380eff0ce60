"""BART's radial and spiral data: samples [1, sample, spoke, coil] and positions [3, ...]."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.data.kspace.spokes import SpokesDataset, SpokesSlice
from engine.data.kspace.trajectory import make_trajectory
from engine.data.readers.kspace.bart import (
    COIL,
    NAMES,
    SLICE,
    _companion,
    _dimensions,
    _pair,
    open_pair,
)
from engine.data.readers.kspace.map_file import open_maps
from engine.data.readers.kspace.spokes import find_trajectory, make_dataset
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

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
        raise RequestError(f"{path}: a BART header fixes the axes; --axes does not apply.")
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
