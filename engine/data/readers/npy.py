"""NumPy's own files, without running anything from them and without trusting their headers."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from engine.data.readers.file_array import BARE, FileArray, Inflated
from engine.files.budget import MIB, SMALL, Budget, PartReader, limit, size_in_words
from engine.files.path_safety import check_regular
from engine.spec.errors import RequestError

MAX_MEMBERS = 1000
MAX_HEADER = 10_000  # bytes, as numpy itself has it
MAX_DIRECTORY = 4 << 20  # bytes, of an archive
LOCAL_HEADER = struct.Struct("<26xHH")  # of an archive's member; two lengths of what follows


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
    return {name: member.shape for name, member in _members(path).items()}


def read_npz(path: Path, name: str) -> FileArray:
    """One array of an archive, read or unpacked slice by slice when it is used."""
    array = _members(path)[name]
    _check_sum(path, name)
    return array


def _check_sum(path: Path, name: str) -> None:
    """What the archive says of its bytes, where looking at all of them is quick."""
    with _Archive(path) as archive:
        member = archive.getinfo(f"{name}.npy")
        if member.file_size <= SMALL:
            budget = Budget(path)
            with archive.open(member) as stream:
                while stream.read(MIB):
                    budget.tick()


class _Archive:
    """A zip file whose every fault is one sentence."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> zipfile.ZipFile:
        check_regular(self.path)
        try:
            self.parts = PartReader(self.path.open("rb", buffering=0), MAX_DIRECTORY)
            self.file = zipfile.ZipFile(self.parts)
        except PermissionError as error:
            raise RequestError(f"{self.path} may not be read: {error.strerror}.") from error
        except RequestError as error:
            raise RequestError(f"{self.path} cannot be read: {error}.") from error
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
            raise RequestError(f"{self.path} cannot be read as a NumPy archive.") from error
        return self.file

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        self.file.close()
        self.parts.close()
        faults = (
            OSError,
            ValueError,
            struct.error,
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


def _members(path: Path) -> dict[str, FileArray]:
    found = {}
    with _Archive(path) as archive, path.open("rb") as file:
        members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
        if len(members) > MAX_MEMBERS:
            raise RequestError(f"{path} holds {len(members)} arrays: too many.")
        budget = Budget(path)
        for member in members:
            budget.visit()
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as stream:
                shape, fortran, dtype = _header(stream)
                begin = stream.tell()
            if dtype.kind not in "fiuc":
                continue
            size = math.prod(shape) * dtype.itemsize
            if member.compress_type == zipfile.ZIP_DEFLATED:
                _afford(path, name, size)
            if member.file_size < begin + size:
                raise RequestError(f"{path}: '{name}' is shorter than it says.")
            file.seek(member.header_offset)
            start = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            offset = member.header_offset + LOCAL_HEADER.size + sum(start)
            if member.compress_type == zipfile.ZIP_STORED:
                array = FileArray(path, dtype, shape, offset + begin, fortran)
            elif member.compress_type == zipfile.ZIP_DEFLATED:
                packed = Inflated(path, offset, BARE)
                array = FileArray(path, dtype, shape, begin, fortran, packed)
            else:
                raise RequestError(f"{path}: '{name}' is compressed in a way that is not known.")
            found[name] = array
    return found


def _afford(path: Path, name: str, size: int) -> None:
    """Packed arrays are unpacked from their beginning, which must come to an end."""
    most = limit("DUALSCOPE_MAX_EXPANDED_MIB") * MIB
    if size > most:
        raise RequestError(
            f"{path}: '{name}' would need {size_in_words(size)}; up to {size_in_words(most)} are "
            "unpacked (DUALSCOPE_MAX_EXPANDED_MIB): save it without compression (np.savez)."
        )


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type; whatever is wrong is a ValueError."""
    try:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version}")
        # numpy would read as much as is declared before it says that it is too much
        count = stream.read(2 * version[0])
        length = int.from_bytes(count, "little")
        if length > MAX_HEADER:
            raise ValueError(f"a header of {length} bytes")
        header = io.BytesIO(count + stream.read(length))
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(header)
    except (SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise ValueError("the header makes no sense") from error
    if any(n < 0 for n in shape):
        raise ValueError("a negative size")
    return shape, fortran, dtype
