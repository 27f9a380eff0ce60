"""The records of a compound HDF5 dataset as bytes, without what they point to.

Asked for one field, h5py still fetches the variable-length arrays of every record: the whole
scan, or whatever size a damaged length claims. The bytes on disk hold only their lengths and
addresses.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import h5py
import numpy as np
from numpy.typing import NDArray

from engine.files.budget import Budget
from engine.files.path_safety import reading
from engine.spec.errors import RequestError

MAX_CHUNK_BYTES = 1 << 24
Records = NDArray[np.uint8]  # [records, bytes of one]


def raw_records(dataset: h5py.Dataset, path: Path, size: int) -> Iterator[Records]:
    """All records of a scalar or one-dimensional dataset in order, some at a time.

    ``size`` is that of a record on disk.
    """
    if dataset.file.id.get_create_plist().get_sizes()[0] != 8:
        raise RequestError(f"{path}: its addresses are not of 64 bits; not supported.")
    Budget(path).expand(int(dataset.size) * size, f"'{dataset.name}'")
    if dataset.chunks:
        yield from _chunks(dataset, path, size)
        return
    offset, total = dataset.id.get_offset(), int(dataset.size)
    if offset is None or not 0 <= offset <= path.stat().st_size - total * size:
        raise _damaged(dataset, path)
    step = max(1, MAX_CHUNK_BYTES // size)
    with path.open("rb") as stream:
        stream.seek(offset)
        for start in range(0, total, step):
            count = min(step, total - start)
            raw = stream.read(count * size)
            if len(raw) != count * size:
                raise _damaged(dataset, path)
            yield np.frombuffer(raw, np.uint8).reshape(count, size)


def _chunks(dataset: h5py.Dataset, path: Path, size: int) -> Iterator[Records]:
    length = dataset.chunks[0]
    expected = length * size
    filters = _filters(dataset)
    if expected > MAX_CHUNK_BYTES:
        raise RequestError(f"{path}: '{dataset.name}' is stored in pieces that are too large.")
    for start in range(0, len(dataset), length):
        info = dataset.id.get_chunk_info_by_coord((start,))
        if info.byte_offset is None or info.size > expected + (1 << 16):
            raise _damaged(dataset, path)
        skipped, raw = dataset.id.read_direct_chunk((start,))
        for bit, code in reversed(list(enumerate(filters))):
            if not skipped >> bit & 1:
                raw = _undo(code, raw, size, expected, path)
        if len(raw) != expected:
            raise _damaged(dataset, path)
        yield np.frombuffer(raw, np.uint8).reshape(length, size)[: len(dataset) - start]


def _filters(dataset: h5py.Dataset) -> list[int]:
    plist = dataset.id.get_create_plist()
    return [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]


def _undo(code: int, raw: bytes, size: int, expected: int, path: Path) -> bytes:
    if code == h5py.h5z.FILTER_FLETCHER32:
        return raw[:-4]
    if code == h5py.h5z.FILTER_SHUFFLE:
        if len(raw) % size:
            raise RequestError(f"{path}: a piece of its records is damaged.")
        return np.frombuffer(raw, np.uint8).reshape(size, -1).T.tobytes()
    if code == h5py.h5z.FILTER_DEFLATE:
        try:
            return zlib.decompressobj().decompress(raw, expected + 8)
        except zlib.error as error:
            raise RequestError(f"{path}: a piece of its records is damaged.") from error
    raise RequestError(f"{path}: its records are compressed in a way that is not supported.")


def _damaged(dataset: h5py.Dataset, path: Path) -> RequestError:
    return RequestError(f"{path}: '{dataset.name}' is damaged or not stored completely.")


# Variable-length values of an HDF5 file, read from its global heap by our own code.
#
# The HDF5 library believes the lengths in a damaged heap: it allocates them, or never returns.
# The heap itself is simple (HDF5 file format, section III.E): collections that start with GCOL
# and their size, filled with objects of index, reference count, size and data padded to 8 bytes.

COLLECTION = struct.Struct("<4sB3xQ")
OBJECT = struct.Struct("<HH4xQ")
MAX_OBJECTS = 1 << 16  # their index has 16 bits
REMEMBERED = 64


class GlobalHeap:
    """``with GlobalHeap(path, base) as heap: heap.read(address, index, size)``.

    ``base`` is where the addresses count from: the size of the file's user block.
    """

    def __init__(self, path: Path, base: int = 0) -> None:
        self.path, self.base = path, base
        self._places: dict[int, dict[int, tuple[int, int]]] = {}
        with reading(path):
            self._stream = path.open("rb")
            self._end = path.stat().st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def read(self, address: int, index: int, size: int) -> bytes:
        """The first ``size`` bytes of an object."""
        if address not in self._places:
            if len(self._places) >= REMEMBERED:
                self._places.clear()
            self._places[address] = self._objects(self.base + address)
        start, stored = self._places[address].get(index, (0, -1))
        if not 0 <= size <= stored:
            raise self._damaged()
        return self._bytes(start, size)

    def _objects(self, at: int) -> dict[int, tuple[int, int]]:
        """Where the objects of the collection at ``at`` lie, and how long they are."""
        signature, version, size = COLLECTION.unpack(self._bytes(at, COLLECTION.size))
        end = at + size
        if signature != b"GCOL" or version != 1 or end > self._end:
            raise self._damaged()
        places: dict[int, tuple[int, int]] = {}
        here = at + COLLECTION.size
        while here + OBJECT.size <= end and len(places) < MAX_OBJECTS:
            index, _, stored = OBJECT.unpack(self._bytes(here, OBJECT.size))
            here += OBJECT.size
            if index == 0:  # the free space that ends a collection
                break
            if here + stored > end or index in places:
                raise self._damaged()
            places[index] = (here, stored)
            here += (stored + 7) // 8 * 8
        return places

    def _bytes(self, at: int, size: int) -> bytes:
        if not 0 <= at <= self._end - size:
            raise self._damaged()
        self._stream.seek(at)
        raw = self._stream.read(size)
        if len(raw) != size:
            raise self._damaged()
        return raw

    def _damaged(self) -> RequestError:
        return RequestError(f"{self.path} is damaged: its variable-length values do not fit.")
