"""The readouts of an ISMRMRD file: a table of their headers, and their samples on a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from engine.data.kspace.grid import Kspace, Plane
from engine.data.readers.hdf5.records import GlobalHeap, raw_records
from engine.data.readers.hdf5.safe import item
from engine.spec.errors import RequestError

# Flags are numbered from 1: flag n is bit n - 1.
NOISE, CALIBRATION, CALIBRATION_AND_IMAGING, REVERSE = 19, 20, 21, 22
# navigators, phase correction, feedback, dummy scans, surface-coil and phase stabilisation scans
NOT_IMAGES = (23, 24, 26, 27, 28, 29, 30, 31)
COMPRESSED = (53, 54, 55, 56)

FIELDS = (
    ("flags", "<u8"),
    ("number_of_samples", "<i8"),
    ("active_channels", "<i8"),
    ("discard_pre", "<i8"),
    ("discard_post", "<i8"),
    ("center_sample", "<i8"),
    ("encoding_space_ref", "<i8"),
    ("sample_time_us", "<f4"),
)
VECTORS = ("position", "read_dir", "phase_dir", "slice_dir")
COUNTERS = (
    "kspace_encode_step_1",
    "kspace_encode_step_2",
    "slice",
    "contrast",
    "phase",
    "repetition",
    "set",
)
# What a record holds of a variable-length array: how many numbers, and where in the heap.
POINTER = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])
TABLE = np.dtype(
    [("record", "<i8"), ("length", "<i8"), ("address", "<u8"), ("index", "<i8"), *FIELDS]
    + [(name, "<f4", (3,)) for name in VECTORS]
    + [(name, "<i8") for name in COUNTERS]
)
MAX_RECORDS = 1 << 22
MAX_LINE_BYTES = 1 << 26
MAX_COMPRESSION = 1100  # deflate cannot do better
Table = NDArray[np.void]


def has_flag(table: Table, *numbers: int) -> Plane:
    bits = np.uint64(sum(1 << (number - 1) for number in numbers))
    return (table["flags"] & bits) != 0


def acquisitions(group: h5py.Group, path: Path) -> h5py.Dataset:
    """The compound dataset ``data`` of a group, if it has the published layout."""
    found = item(group, "data")
    if not isinstance(found, h5py.Dataset) or found.ndim != 1 or not found.dtype.names:
        raise RequestError(f"{path}: '{group.name}/data' is no list of ISMRMRD acquisitions.")
    dtype: Any = found.dtype
    if not {"head", "traj", "data"} <= set(dtype.names) or not _is_header(dtype["head"]):
        raise RequestError(f"{path}: '{group.name}/data' lacks fields of an ISMRMRD acquisition.")
    samples = h5py.check_vlen_dtype(dtype["data"])
    if samples != np.dtype("<f4"):
        raise RequestError(f"{path}: the samples are {samples}, not 32-bit floating point.")
    if len(found) == 0:
        raise RequestError(f"{path}: there is no acquisition in it.")
    stored = MAX_COMPRESSION * found.id.get_storage_size()
    if len(found) > MAX_RECORDS or len(found) * found.dtype.itemsize > stored:
        raise RequestError(
            f"{path}: {len(found)} acquisitions are more than the file can hold, or too many."
        )
    return found


def _is_header(head: Any) -> bool:
    """Plain numbers under the published names (bytes from disk are laid over this type)."""
    wanted = {*(name for name, _ in FIELDS), *VECTORS, "idx"}
    if head.hasobject or not wanted <= set(head.names or ()):
        return False
    return set(COUNTERS) <= set(head["idx"].names or ())


def read_table(data: h5py.Dataset, path: Path) -> Table:
    """The headers of all acquisitions, without their samples."""
    dtype: Any = data.dtype
    layout = np.dtype(
        {
            "names": ["head", "data"],
            "formats": [dtype["head"], POINTER],
            "offsets": [dtype.fields[name][1] for name in ("head", "data")],
            "itemsize": dtype.itemsize,
        }
    )
    parts: list[Table] = []
    for raw in raw_records(data, path, dtype.itemsize):
        records = raw.view(layout)[:, 0]
        part = np.zeros(len(records), TABLE)
        for name in (*(name for name, _ in FIELDS), *VECTORS):
            part[name] = records["head"][name]
        for name in COUNTERS:
            part[name] = records["head"]["idx"][name]
        for name in ("length", "address", "index"):
            part[name] = records["data"][name]
        parts.append(part)
    table = np.concatenate(parts)
    table["record"] = np.arange(len(table))
    return table


def check_lengths(table: Table, path: Path) -> None:
    """As many samples as the headers say, and not absurdly many."""
    wanted = 2 * table["number_of_samples"] * table["active_channels"]
    wrong = np.flatnonzero(table["length"] != wanted)
    if len(wrong):
        head = table[wrong[0]]
        raise RequestError(
            f"{path}: acquisition {int(head['record'])} holds {int(head['length'])} numbers, "
            f"its header speaks of {int(head['active_channels'])} coils x "
            f"{int(head['number_of_samples'])} samples."
        )
    if 4 * int(wanted.max()) > MAX_LINE_BYTES:
        raise RequestError(f"{path}: a line of {4 * int(wanted.max())} bytes is too long.")


def read_samples(table: Table, path: Path, base: int) -> Iterator[Kspace]:
    """The samples [coils, n] of each acquisition of the table."""
    check_lengths(table, path)
    with GlobalHeap(path, base) as heap:
        for head in table:
            raw = heap.read(int(head["address"]), int(head["index"]), 4 * int(head["length"]))
            yield np.frombuffer(raw, "<c8").reshape(int(head["active_channels"]), -1)


@dataclass(frozen=True)
class Placed:
    """Readouts with their place on the grid: line ``ky``, partition ``kz``, rows from ``start``.

    ``first`` and ``last`` bound the samples to use, in the order of rising k.
    """

    table: Table
    ky: NDArray[np.int64]
    kz: NDArray[np.int64]
    start: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def __getitem__(self, chosen: NDArray) -> Placed:
        columns = (self.table, self.ky, self.kz, self.start, self.first, self.last)
        return Placed(*(column[chosen] for column in columns))

    def __len__(self) -> int:
        return len(self.table)

    def counts(self, shape: tuple[int, int, int]) -> NDArray[np.int32]:
        """How often each sample of the grid [partition, line, row] was measured."""
        partitions, columns, rows = shape
        edges = np.zeros((partitions, columns, rows + 1), np.int32)
        np.add.at(edges, (self.kz, self.ky, self.start), 1)
        np.add.at(edges, (self.kz, self.ky, self.start + self.last - self.first), -1)
        return edges.cumsum(axis=-1, dtype=np.int32)[..., :-1]

    def assemble(self, counts: NDArray[np.int32], wave: NDArray, path: Path, base: int) -> Kspace:
        """[coils, rows, columns]: repeats averaged, partitions summed with weights ``wave``."""
        total = np.zeros((self._coils, counts.shape[2], counts.shape[1]), np.complex64)
        for ky, kz, rows, samples in self._readouts(path, base):
            weight = wave[kz] / counts[kz, ky, rows]
            total[:, rows, ky] += (samples * weight).astype(np.complex64)
        return total

    def assemble_across(
        self, counts: NDArray[np.int32], wave: NDArray, path: Path, base: int
    ) -> Kspace:
        """[coils, columns, partitions]: repeats averaged, rows summed with weights ``wave``."""
        total = np.zeros((self._coils, counts.shape[1], counts.shape[0]), np.complex64)
        for ky, kz, rows, samples in self._readouts(path, base):
            weight = wave[rows] / counts[kz, ky, rows]
            total[:, ky, kz] += (samples * weight).sum(axis=1).astype(np.complex64)
        return total

    @property
    def _coils(self) -> int:
        return int(self.table["active_channels"][0])

    def _readouts(self, path: Path, base: int) -> Iterator[tuple[int, int, slice, Kspace]]:
        """Line, partition, rows and samples [coils, rows] of each readout, along rising k."""
        reverse = has_flag(self.table, REVERSE)
        for i, line in enumerate(read_samples(self.table, path, base)):
            samples = line[:, ::-1] if reverse[i] else line
            samples = samples[:, self.first[i] : self.last[i]]
            rows = slice(int(self.start[i]), int(self.start[i]) + samples.shape[1])
            yield int(self.ky[i]), int(self.kz[i]), rows, samples


def centres(table: Table) -> tuple[NDArray[np.int64], str | None]:
    """The sample at the zero frequency, counted along rising k, and a warning.

    Reversed lines are turned round first; their ``center_sample`` is taken as that of the
    turned line, unless it only fits the forward lines when counted as it was acquired.
    """
    n, stated = table["number_of_samples"], table["center_sample"].copy()
    if not stated.any() and (n > 1).any():
        return n // 2, "The header gives no centre of the echo; the middle sample is assumed."
    reverse = has_flag(table, REVERSE)
    forward = np.unique(stated[~reverse])
    if len(forward) == 1:
        mirrored = reverse & (n - 1 - stated == forward[0]) & (stated != forward[0])
        stated[mirrored] = forward[0]
    return stated, None


def place(
    table: Table,
    shape: tuple[int, int, int],
    centre_lines: tuple[int, int],
    path: Path,
) -> tuple[Placed, str | None]:
    """Put readouts on the grid ``(partitions, columns, rows)``, by their headers alone."""
    partitions, columns, rows = shape
    ky = table["kspace_encode_step_1"] - centre_lines[0] + columns // 2
    kz = table["kspace_encode_step_2"] - centre_lines[1] + partitions // 2
    for index, size, name in ((ky, columns, "line"), (kz, partitions, "partition")):
        if ((index < 0) | (index >= size)).any():
            raise RequestError(
                f"{path}: a phase-encode {name} lies outside the {size} of the header."
            )
    centre, warning = centres(table)
    n, reverse = table["number_of_samples"], has_flag(table, REVERSE)
    before, after = table["discard_pre"], table["discard_post"]
    first = np.where(reverse, after, before)
    last = n - np.where(reverse, before, after)
    start = rows // 2 - centre + first
    if (last <= first).any() or (start < 0).any() or (start + last - first > rows).any():
        raise RequestError(
            f"{path}: a line of up to {int(n.max())} samples, zero frequency at "
            f"{int(centre.max())}, does not fit the {rows} of the header."
        )
    return Placed(table, ky, kz, start, first, last), warning
