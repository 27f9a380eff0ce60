"""The records of a compound HDF5 dataset as bytes, without what they point to.

Asked for one field, h5py still fetches the variable-length arrays of every record: the whole
scan, or whatever size a damaged length claims. The bytes on disk hold only their lengths and
addresses.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from engine.spec.errors import RequestError

MAX_CHUNK_BYTES = 1 << 24
Records = NDArray[np.uint8]  # [records, bytes of one]


def raw_records(dataset: h5py.Dataset, path: Path, size: int) -> Iterator[Records]:
    """All records of a scalar or one-dimensional dataset in order, some at a time.

    ``size`` is that of a record on disk.
    """
    if dataset.file.id.get_create_plist().get_sizes()[0] != 8:
        raise RequestError(f"{path}: its addresses are not of 64 bits; not supported.")
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
