"""System matrices kept in memory and on disk, so that a geometry is built once.

A file of the cache is never trusted: whatever does not have exactly the size, the checksum and
the structure of a sparse matrix of the wanted geometry is deleted and built again. Indices out
of range would make the sparse product read foreign memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import platformdirs
from numpy.typing import DTypeLike, NDArray

from engine.physics.geometry import CTGeometry
from engine.physics.system_matrix import (
    BUILDER_VERSION,
    CSR,
    INT32_MAX,
    SystemMatrix,
    build,
    check_budget,
)

FORMAT: Final = "dualscope system matrix 1"
SUFFIX: Final = ".csr"
MEMORY_BYTES: Final = 2 * 1024**3
DISK_BYTES: Final = 4 * 1024**3
HEADER_BYTES: Final = 4096
STALE_SECONDS: Final = 3600.0


class MatrixCache:
    """Least recently used matrices go first, in memory and on disk.

    Parameters
    ----------
    folder : where files go; None for a cache in memory only
    memory_bytes, disk_bytes : the bounds. What is larger than a bound is not kept there.
    """

    def __init__(
        self,
        folder: Path | str | None,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.memory_bytes = memory_bytes
        self.disk_bytes = disk_bytes
        self._kept: OrderedDict[str, SystemMatrix] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, geometry: CTGeometry, dtype: DTypeLike = np.float32) -> SystemMatrix:
        """The matrix of a geometry: from memory, from disk, or built."""
        value_type = np.dtype(dtype)
        key = f"{geometry.fingerprint()}-v{BUILDER_VERSION}-{value_type.name}"
        with self._lock:  # two threads asking for the same matrix build it once
            matrix = self._kept.get(key)
            if matrix is not None:
                self._kept.move_to_end(key)
                return matrix
            check_budget(geometry, value_type)  # a file may come from a larger machine
            forward = self._read(key, geometry, value_type)
            if forward is not None:
                matrix = SystemMatrix.from_forward(forward)
            else:
                matrix = build(geometry, value_type)
                self._write(key, matrix.forward)
            self._keep(key, matrix)
            return matrix

    @property
    def memory_used_bytes(self) -> int:
        return sum(matrix.nbytes for matrix in self._kept.values())

    def _keep(self, key: str, matrix: SystemMatrix) -> None:
        if matrix.nbytes > self.memory_bytes:
            return
        self._kept[key] = matrix
        while self.memory_used_bytes > self.memory_bytes:
            self._kept.popitem(last=False)

    # -- disk --------------------------------------------------------------------------------

    def _read(self, key: str, geometry: CTGeometry, dtype: np.dtype) -> CSR | None:
        if self.folder is None:
            return None
        path = self.folder / (key + SUFFIX)
        shape = (
            geometry.views * geometry.detectors,
            geometry.image_size[0] * geometry.image_size[1],
        )
        try:
            with open(path, "rb") as file:
                matrix = read_matrix(file, key, shape, dtype)
        except OSError:
            return None
        except ValueError:
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of last use, for the least-recently-used order
        return matrix

    def _write(self, key: str, matrix: CSR) -> None:
        """Write beside, then rename: a reader sees the old file, the new one or none."""
        if self.folder is None or matrix.nbytes + HEADER_BYTES > self.disk_bytes:
            return
        temporary = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make_room(matrix.nbytes + HEADER_BYTES)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            temporary = Path(name)
            with os.fdopen(handle, "wb") as file:
                write_matrix(file, key, matrix)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.folder / (key + SUFFIX))
        except OSError:  # full or read-only: the cache is a convenience
            if temporary is not None:
                _remove(temporary)

    def _make_room(self, needed: int) -> None:
        assert self.folder is not None
        files = []
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another process may have removed it
                if path.suffix == ".part" and time.time() - path.stat().st_mtime > STALE_SECONDS:
                    _remove(path)  # left by a process that was killed
                elif path.suffix == SUFFIX:
                    files.append((path.stat().st_mtime, path.stat().st_size, path))
        used = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if used + needed <= self.disk_bytes:
                break
            _remove(path)
            used -= size


def write_matrix(file: BinaryIO, key: str, matrix: CSR) -> None:
    """One line of JSON, then row pointers, columns and values as raw little-endian numbers."""
    arrays = (matrix.crow, matrix.col, matrix.value)
    header = {"format": FORMAT, "key": key, "entries": matrix.col.size, "sha256": _digest(*arrays)}
    file.write(json.dumps(header).encode() + b"\n")
    for array in arrays:
        file.write(_little_endian(array).data)


def read_matrix(file: BinaryIO, key: str, shape: tuple[int, int], dtype: np.dtype) -> CSR:
    """The matrix of a cache file, or `ValueError` for anything that is not exactly it."""
    header = _header(file.readline(HEADER_BYTES))
    entries = header.get("entries")
    if header.get("format") != FORMAT or header.get("key") != key:
        raise ValueError("not a matrix of this geometry")
    if type(entries) is not int or not 0 <= entries <= INT32_MAX:
        raise ValueError("impossible number of entries")
    lengths = (shape[0] + 1, entries, entries)
    types = (np.dtype("<i4"), np.dtype("<i4"), dtype.newbyteorder("<"))
    expected = sum(n * t.itemsize for n, t in zip(lengths, types, strict=True))
    begin = file.tell()
    if os.fstat(file.fileno()).st_size - begin != expected:
        raise ValueError("wrong size")
    crow, col, value = (_read_array(file, n, t) for n, t in zip(lengths, types, strict=True))
    if header.get("sha256") != _digest(crow, col, value):
        raise ValueError("damaged")
    # A checksum can be forged; the structure is what keeps the sparse product in bounds.
    if crow[0] != 0 or crow[-1] != entries or (np.diff(crow) < 0).any():
        raise ValueError("row pointers out of order")
    if entries and (col.min() < 0 or col.max() >= shape[1] or not np.isfinite(value).all()):
        raise ValueError("entries out of range")
    return CSR(shape, crow, col, value)


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError("unreadable header") from error
    if not isinstance(header, dict):
        raise ValueError("unreadable header")
    return header


def _read_array(file: BinaryIO, length: int, dtype: np.dtype) -> NDArray:
    array = np.empty(length, dtype=dtype)
    if file.readinto(array.view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
        raise ValueError("too short")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _little_endian(array: NDArray) -> NDArray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _digest(*arrays: NDArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(_little_endian(array).data)
    return digest.hexdigest()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


_default: MatrixCache | None = None


def default_cache() -> MatrixCache:
    """The cache of this process, in DUALSCOPE_CACHE or the user's cache folder."""
    global _default
    folder = Path(
        os.environ.get("DUALSCOPE_CACHE") or platformdirs.user_cache_dir("dualscope", False)
    )
    if _default is None or _default.folder != folder / "matrices":
        _default = MatrixCache(folder / "matrices")
    return _default
