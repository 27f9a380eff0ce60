"""An array in a file whose parts are read when asked for, with plain reads.

Not a mapped file: when a mapped file shrinks or its drive vanishes, the system ends the whole
program at the next access, and there is nothing to catch.
"""

from __future__ import annotations

import math
from io import RawIOBase
from pathlib import Path
from typing import Any

import numpy as np

from engine.spec.errors import RequestError

SHORT_BYTES = 4096  # pieces below this are cheaper to read together with what lies between


class FileArray:
    """``array[index]`` reads; one number and full slices read only that part of the file."""

    def __init__(
        self,
        path: Path,
        dtype: np.dtype,
        shape: tuple[int, ...],
        offset: int = 0,
        fortran: bool = False,
    ) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), tuple(shape)
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
            rows = self._read(1, 0, self.size).reshape(outer, shape[axis], block)
            return rows[:, number].reshape(rest)
        return self._read(outer, number * block, block, shape[axis] * block).reshape(rest)

    def _read(self, count: int, first: int, length: int, step: int = 0) -> np.ndarray:
        """``count`` pieces of ``length`` values, the first at ``first``, ``step`` apart."""
        out = np.empty((count, length), self.dtype)
        size = self.dtype.itemsize
        try:
            with self.path.open("rb", buffering=0) as stream:
                for piece in range(count):
                    stream.seek(self._offset + (first + piece * step) * size)
                    if not _fill(stream, out[piece].view(np.uint8)):
                        raise RequestError(f"{self.path} has become shorter since it was opened.")
        except OSError as error:
            raise RequestError(f"Cannot read {self.path}: {error.strerror or error}.") from error
        return out


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
