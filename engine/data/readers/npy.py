"""NumPy's own files, without running anything from them and without trusting their headers."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from engine.data.readers.file_array import FileArray
from engine.spec.errors import RequestError

MAX_BYTES = 1 << 30
MAX_MEMBERS = 1000


def read_npy(path: Path) -> FileArray:
    """Opened, not read: slices come from the disk when they are used."""
    try:
        with path.open("rb") as stream:
            shape, fortran, dtype = _header(stream)
            start = stream.tell()
        if start + math.prod(shape) * dtype.itemsize > path.stat().st_size or dtype.hasobject:
            raise ValueError("the array is not in the file")
        return FileArray(path, dtype, shape, start, fortran)
    except PermissionError as error:
        raise RequestError(f"{path} may not be read: {error.strerror}.") from error
    except (OSError, ValueError, EOFError, OverflowError, TypeError, MemoryError) as error:
        raise RequestError(f"{path} cannot be read as a NumPy array.") from error


def npz_names(path: Path) -> dict[str, tuple[int, ...]]:
    """The arrays of numbers in an archive and their shapes."""
    return {name: shape for name, (shape, _) in _headers(path).items()}


def read_npz(path: Path, name: str) -> np.ndarray:
    """One array of an archive; its size is checked before anything is unpacked."""
    shape, dtype = _headers(path)[name]
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_BYTES:
        raise RequestError(f"{path}: '{name}' would need {size / 2**30:.0f} GiB.")
    with _Archive(path) as archive:
        member = f"{name}.npy"
        if archive.getinfo(member).file_size < size:
            raise RequestError(f"{path}: '{name}' is shorter than it says.")
        with archive.open(member) as stream:
            fortran = _header(stream)[1]
            content = stream.read(size)
    if len(content) != size:
        raise RequestError(f"{path}: '{name}' is shorter than it says.")
    flat = np.frombuffer(content, dtype=dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


class _Archive:
    """A zip file whose every fault is one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> zipfile.ZipFile:
        try:
            self.file = zipfile.ZipFile(self.path)
        except PermissionError as error:
            raise RequestError(f"{self.path} may not be read: {error.strerror}.") from error
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
            raise RequestError(f"{self.path} cannot be read as a NumPy archive.") from error
        return self.file

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        self.file.close()
        faults = (
            OSError,
            ValueError,
            KeyError,
            EOFError,
            RuntimeError,
            NotImplementedError,
            zipfile.BadZipFile,
            zlib.error,
            MemoryError,
            OverflowError,
            TypeError,
        )
        if isinstance(error, faults):
            raise RequestError(f"{self.path} cannot be read: it is damaged.") from error


def _headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    found = {}
    with _Archive(path) as archive:
        members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
        if len(members) > MAX_MEMBERS:
            raise RequestError(f"{path} holds {len(members)} arrays: too many.")
        for member in members:
            with archive.open(member) as stream:
                shape, _, dtype = _header(stream)
            if dtype.kind in "fiuc":
                found[member.filename.removesuffix(".npy")] = (shape, dtype)
    return found


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type; whatever is wrong is a ValueError."""
    try:
        version = npy.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = npy.read_array_header_2_0(stream)
        else:
            raise ValueError(f"version {version}")
    except (SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise ValueError("the header makes no sense") from error
    if any(n < 0 for n in shape):
        raise ValueError("a negative size")
    return shape, fortran, dtype
