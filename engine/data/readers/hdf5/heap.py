"""Variable-length values of an HDF5 file, read from its global heap by our own code.

The HDF5 library believes the lengths in a damaged heap: it allocates them, or never returns.
The heap itself is simple (HDF5 file format, section III.E): collections that start with GCOL
and their size, filled with objects of index, reference count, size and data padded to 8 bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.spec.errors import RequestError

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
        try:
            self._stream = path.open("rb")
            self._end = path.stat().st_size
        except OSError as error:
            raise RequestError(f"{path} cannot be read: {error.strerror}.") from error

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
