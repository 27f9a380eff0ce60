"""An array in a file whose parts are read when asked for, with plain reads.

Not a mapped file: when a mapped file shrinks or its drive vanishes, the system ends the whole
program at the next access, and there is nothing to catch.
"""

from __future__ import annotations

import math
import threading
import zlib
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any

import numpy as np

from engine.files.budget import MIB, Budget
from engine.files.path_safety import reading
from engine.spec.errors import RequestError

SHORT_BYTES = 4096  # pieces below this are cheaper to read together with what lies between
AT_ONCE_BYTES = 64 * MIB  # of those


class FileArray:
    """``array[index]`` reads; one number and full slices read only that part of the file."""

    def __init__(
        self,
        path: Path,
        dtype: np.dtype,
        shape: tuple[int, ...],
        offset: int = 0,
        fortran: bool = False,
        packed: Inflated | None = None,
    ) -> None:
        """``offset`` counts bytes of the file, or of what is ``packed`` in it."""
        self.path, self.dtype, self.shape = path, np.dtype(dtype), tuple(shape)
        self._packed = packed
        self._offset, self._fortran = offset, fortran
        self.ndim, self.size = len(self.shape), math.prod(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray:
        parts = index if isinstance(index, tuple) else (index,)
        picked = [axis for axis, part in enumerate(parts) if not _is_full(part)]
        if len(picked) != 1 or not isinstance(parts[picked[0]], (int, np.integer)):
            return self._whole()[index]
        axis = picked[0]
        number = range(self.shape[axis])[int(parts[axis])]
        if not self._fortran:
            return self._plane(self.shape, axis, number)
        return self._plane(self.shape[::-1], self.ndim - 1 - axis, number).T

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self._whole()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _whole(self) -> np.ndarray:
        shape = self.shape[::-1] if self._fortran else self.shape
        values = self._read(1, 0, self.size).reshape(shape)
        return values.T if self._fortran else values

    def _plane(self, shape: tuple[int, ...], axis: int, number: int) -> np.ndarray:
        """Entry ``number`` along ``axis`` of an array in the usual order of axes."""
        outer, block = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        rest = (*shape[:axis], *shape[axis + 1 :])
        if outer > 1 and block * self.dtype.itemsize < SHORT_BYTES:
            row = shape[axis] * block
            out = np.empty((outer, block), self.dtype)
            step = max(1, AT_ONCE_BYTES // (row * self.dtype.itemsize))
            for start in range(0, outer, step):
                count = min(step, outer - start)
                rows = self._read(1, start * row, count * row).reshape(count, shape[axis], block)
                out[start : start + count] = rows[:, number]
            return out.reshape(rest)
        return self._read(outer, number * block, block, shape[axis] * block).reshape(rest)

    def _read(self, count: int, first: int, length: int, step: int = 0) -> np.ndarray:
        """``count`` pieces of ``length`` values, the first at ``first``, ``step`` apart."""
        size = self.dtype.itemsize
        budget = Budget(self.path)
        (budget.read if self._packed is None else budget.expand)(count * length * size)
        out = np.empty((count, length), self.dtype)
        if self._packed is not None:
            for piece in range(count):
                start = self._offset + (first + piece * step) * size
                self._packed.read_into(start, memoryview(out[piece].view(np.uint8).data))
            return out
        with reading(self.path), self.path.open("rb", buffering=0) as stream:
            for piece in range(count):
                stream.seek(self._offset + (first + piece * step) * size)
                if not _fill(stream, out[piece].view(np.uint8)):
                    raise RequestError(f"{self.path} has become shorter since it was opened.")
        return out


PIECE, KEPT_EVERY = MIB // 4, 4 * MIB
GZIP_OR_ZLIB, BARE = 47, -zlib.MAX_WBITS  # what zlib calls the forms of a stream


@dataclass
class _Place:
    """How far a stream is unpacked; the worker is copied before it goes on from here again."""

    made: int  # bytes of the contents
    taken: int  # place in the file
    worker: Any


class Inflated:
    """The contents of a deflated part of a file, at any place, without keeping them.

    States of the decoder are kept on the way, so that going back costs a few megabytes of work.
    """

    def __init__(self, path: Path, start: int = 0, form: int = GZIP_OR_ZLIB) -> None:
        self.path, self.form = path, form
        first = _Place(0, start, zlib.decompressobj(form))
        self._kept, self._now = [first], _Place(0, start, first.worker.copy())
        self._lock = threading.Lock()

    def read(self, at: int, count: int) -> bytes:
        out = bytearray(count)
        self.read_into(at, memoryview(out))
        return bytes(out)

    def read_into(self, at: int, target: memoryview) -> None:
        """Fill ``target`` with the contents from ``at`` on; RequestError when there are less."""
        budget = Budget(self.path)
        try:
            with self._lock, self.path.open("rb") as stream:
                self._go_to(at)
                while self._now.made < at + len(target):
                    begin = self._now.made
                    piece = self._next(stream, at + len(target) - begin)
                    skipped = max(0, at - begin)
                    if skipped < len(piece):
                        target[begin + skipped - at : begin + len(piece) - at] = piece[skipped:]
                    budget.tick()
        except zlib.error as error:
            raise RequestError(f"{self.path}: its compressed data are damaged.") from error
        except OSError as error:
            raise RequestError(f"Cannot read {self.path}: {error.strerror or error}.") from error

    def _go_to(self, at: int) -> None:
        """To the nearest known place before ``at``."""
        best = max((one for one in self._kept if one.made <= at), key=lambda one: one.made)
        if not best.made <= self._now.made <= at:
            self._now = _Place(best.made, best.taken, best.worker.copy())

    def _next(self, stream: RawIOBase | Any, wanted: int) -> bytes:
        now = self._now
        if now.worker.eof and self.form == GZIP_OR_ZLIB:  # gzip files may have several members
            now.worker = zlib.decompressobj(self.form)
        stream.seek(now.taken)
        packed = stream.read(PIECE)
        piece = b"" if now.worker.eof else now.worker.decompress(packed, min(wanted, 4 * PIECE))
        left = len(now.worker.unconsumed_tail) or len(now.worker.unused_data)
        if not piece and left == len(packed):
            raise RequestError(f"{self.path} is cut off: it is shorter than its header says.")
        now.taken += len(packed) - left
        now.made += len(piece)
        if now.made - self._kept[-1].made >= KEPT_EVERY:
            self._kept.append(_Place(now.made, now.taken, now.worker.copy()))
        return piece


def _is_full(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _fill(stream: RawIOBase, target: np.ndarray) -> bool:
    """Read until ``target`` is full; False at the end of the file."""
    view, filled = memoryview(target.data), 0
    while filled < len(view):
        got = stream.readinto(view[filled:])
        if not got:
            return False
        filled += got
    return True
