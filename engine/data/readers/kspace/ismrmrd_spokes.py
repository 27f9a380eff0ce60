"""ISMRMRD acquisitions that bring their own trajectory: radial, spiral and other paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from engine.data.kspace.spokes import SpokesDataset, SpokesSlice
from engine.data.kspace.trajectory import Positions, Trajectory, make_trajectory, two_components
from engine.data.readers.hdf5.records import GlobalHeap, raw_records
from engine.data.readers.hdf5.safe import open_h5
from engine.data.readers.kspace.ismrmrd_lines import (
    MAX_LINE_BYTES,
    NOISE,
    POINTER,
    Table,
    acquisitions,
    has_flag,
    read_samples,
)
from engine.data.readers.kspace.mrd_header import Encoding, MrdHeader
from engine.data.readers.kspace.spokes import make_dataset
from engine.physics.prewhitening import Prewhitening, prewhitening
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

MAX_NOISE_SAMPLES = 1 << 18


def open_ismrmrd_spokes(
    path: Path, group: str, header: MrdHeader, table: Table, imaging: Table, options: InputOptions
) -> SpokesDataset:
    """``imaging`` are the acquisitions of the image, ``table`` all of them."""
    encoding = header.encodings[int(imaging["encoding_space_ref"][0])]
    if encoding.encoded.matrix[2] > 1:
        raise RequestError(
            f"{path}: a {encoding.trajectory[:20]} trajectory with partitions; only scans of "
            "single planes are supported."
        )
    numbers, warnings = np.unique(imaging["slice"]), []
    length = int(np.bincount(imaging["number_of_samples"]).argmax())
    odd = imaging["number_of_samples"] != length
    if odd.any():
        warnings.append(f"{int(odd.sum())} readouts of another length than {length} are left out.")
        imaging = imaging[~odd]
    with open_h5(path) as file:
        base = file.userblock_size
        pointers = _positions_at(acquisitions(file[group], path), path)
    whitening = _whitening(path, header, table, imaging, base)

    def lines_of(number: int) -> Table:
        return imaging[imaging["slice"] == numbers[number]]

    def paths_of(lines: Table) -> Trajectory:
        raw = _positions(lines, pointers, encoding, path, base)
        return make_trajectory(raw, options, str(path), max(encoding.recon.matrix[:2]))

    def load(number: int) -> SpokesSlice:
        lines = lines_of(number)
        samples = np.stack([*read_samples(lines, path, base)], axis=1)
        samples = samples[:, :, _used(lines)]
        samples = samples if whitening is None else whitening.apply(samples)
        trajectory = first if number == 0 else paths_of(lines)
        return SpokesSlice(samples.astype(np.complex64), trajectory)

    first = paths_of(lines_of(0))
    coils = int(imaging["active_channels"][0])
    fov = encoding.recon.fov_mm[0] or encoding.encoded.fov_mm[0]
    pixel = fov / first.size if fov > 0 else None
    dataset = make_dataset(path, options, first, load, coils, len(numbers), pixel)
    dataset.noise_sigma = 0.0 if whitening is None else whitening.sigma
    dataset.add_fact("format", f"ISMRMRD, group {group}", "the file")
    dataset.warnings += warnings
    return dataset


def _used(lines: Table) -> slice:
    """The samples that are not marked as to be discarded."""
    first, n = lines[0], int(lines[0]["number_of_samples"])
    return slice(int(first["discard_pre"]), n - int(first["discard_post"]))


def _positions_at(data: h5py.Dataset, path: Path) -> Table:
    """Where the trajectories of all acquisitions lie, and of how many components they are."""
    dtype = data.dtype
    if h5py.check_vlen_dtype(dtype["traj"]) != np.dtype("<f4"):
        raise RequestError(f"{path}: its trajectories are not 32-bit floating point.")
    if "trajectory_dimensions" not in (dtype["head"].names or ()):
        raise RequestError(f"{path}: its headers do not speak of trajectories.")
    layout = np.dtype(
        {
            "names": ["head", "traj"],
            "formats": [dtype["head"], POINTER],
            "offsets": [dtype.fields[name][1] for name in ("head", "traj")],
            "itemsize": dtype.itemsize,
        }
    )
    kept = np.dtype(
        [("components", "<i8"), ("length", "<i8"), ("address", "<u8"), ("index", "<i8")]
    )
    parts = []
    for raw in raw_records(data, path, dtype.itemsize):
        records = raw.view(layout)[:, 0]
        part = np.zeros(len(records), kept)
        part["components"] = records["head"]["trajectory_dimensions"]
        for name in ("length", "address", "index"):
            part[name] = records["traj"][name]
        parts.append(part)
    return np.concatenate(parts)


def _positions(
    lines: Table, pointers: Table, encoding: Encoding, path: Path, base: int
) -> Positions:
    """``[2, lines, samples]`` in the file's own unit."""
    chosen = pointers[lines["record"]]
    n = int(lines[0]["number_of_samples"])
    components = int(chosen[0]["components"])
    if components not in (2, 3) or (chosen["length"] != components * n).any():
        raise RequestError(
            f"{path}: a {encoding.trajectory[:20]} trajectory, but not every acquisition holds "
            "the 2 or 3 components of each sample's position."
        )
    if 4 * components * n > MAX_LINE_BYTES:
        raise RequestError(f"{path}: a trajectory of {n} samples is too long.")
    stacked = np.stack([*_read(chosen, path, base)]).reshape(len(lines), n, components)
    return two_components(np.moveaxis(stacked, -1, 0)[:, :, _used(lines)], str(path))


def _read(chosen: Table, path: Path, base: int) -> Iterator[np.ndarray]:
    with GlobalHeap(path, base) as heap:
        for one in chosen:
            raw = heap.read(int(one["address"]), int(one["index"]), 4 * int(one["length"]))
            yield np.frombuffer(raw, "<f4")


def _whitening(
    path: Path, header: MrdHeader, table: Table, imaging: Table, base: int
) -> Prewhitening | None:
    """From the file's noise scans, when they fit its readouts."""
    noise = table[has_flag(table, NOISE)]
    if not len(noise) or (noise["active_channels"] != imaging["active_channels"][0]).any():
        return None
    length = max(1, int(noise["number_of_samples"].max()))
    noise = noise[: max(1, MAX_NOISE_SAMPLES // length)]
    samples = np.concatenate([*read_samples(noise, path, base)], axis=1)
    dwell = [float(np.median(lines["sample_time_us"])) for lines in (noise, imaging)]
    ratio = dwell[0] / dwell[1] if min(dwell) > 0 else 1.0
    return prewhitening(samples, ratio / header.noise_bandwidth)
