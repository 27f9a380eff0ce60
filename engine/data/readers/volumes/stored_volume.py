"""Numbers of a volume as they lie in a file: plain, compressed or as text.

Every header is a stranger's: what it declares is compared with the size of the file before
anything is read, and unpacking stops at the declared size.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.data.readers.file_array import Inflated
from engine.files.budget import MIB, Budget, limit
from engine.files.path_safety import check_regular, reading
from engine.spec.errors import RequestError

MAX_PLANE_BYTES = 1 << 29
MAX_TEXT_BYTES = 1 << 24
MAX_SIDE, MAX_SLICES = 1 << 20, 50_000
DEFLATE_RATIO = 1032  # zlib cannot pack tighter than this


@dataclass
class StoredVolume:
    """Planes of ``shape`` (i fastest, then j; all further axes number the planes).

    ``offset`` counts bytes of the file, ``skip`` bytes after unpacking. Numbers as text are read
    once, when the first plane is asked for.
    """

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int = 0
    skip: int = 0
    packing: str = "raw"  # or 'deflate' (gzip and zlib alike) or 'text'
    _inflated: Inflated | None = None
    _numbers: np.ndarray | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if len(self.shape) < 3 or min(self.shape) < 1 or max(self.shape) > MAX_SIDE:
            sizes = " x ".join(str(n) for n in self.shape[:8])
            raise RequestError(f"{self.path}: a volume of {sizes} points cannot be used.")
        if self.offset < 0 or self.skip < 0:
            raise RequestError(f"{self.path}: its header says that the data begin before the file.")
        if self.shape[2] > MAX_SLICES:
            raise RequestError(f"{self.path}: {self.shape[2]} slices are too many.")
        self._check_sizes()

    @property
    def plane_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def planes(self) -> int:
        return math.prod(self.shape[2:])

    def _check_sizes(self) -> None:
        size, wanted = file_size(self.path), self.plane_bytes * self.planes
        available = size - self.offset
        if self.plane_bytes > MAX_PLANE_BYTES:
            raise RequestError(f"{self.path}: slices of {self.shape[:2]} points are too large.")
        if self.packing == "raw":
            enough = available >= self.skip + wanted
        elif self.packing == "text":
            enough = available >= 2 * math.prod(self.shape) - 1
            if size > MAX_TEXT_BYTES:
                raise RequestError(f"{self.path}: numbers as text are read up to 16 MB only.")
        else:
            if self.skip + wanted > limit("DUALSCOPE_MAX_EXPANDED_MIB") * MIB:
                raise RequestError(
                    f"{self.path}: it would need {wanted / 2**30:.1f} GiB when unpacked "
                    "(DUALSCOPE_MAX_EXPANDED_MIB); store it uncompressed, so that its slices can "
                    "be read one by one."
                )
            enough = DEFLATE_RATIO * available >= self.skip + wanted
        if not enough:
            raise _too_short(self.path)

    def plane(self, number: int) -> np.ndarray:
        """The stored plane ``[i, j]``."""
        start = self.skip + number * self.plane_bytes
        if self.packing == "raw":
            Budget(self.path).read(self.plane_bytes)
            with _opened(self.path) as stream:
                stream.seek(self.offset + start)
                content = stream.read(self.plane_bytes)
            if len(content) < self.plane_bytes:
                raise _too_short(self.path)
            flat = np.frombuffer(content, self.dtype)
        elif self.packing == "deflate":
            Budget(self.path).expand(self.plane_bytes)
            flat = np.frombuffer(self._contents().read(start, self.plane_bytes), self.dtype)
        else:
            with self._lock:
                if self._numbers is None:
                    with _opened(self.path) as stream:
                        stream.seek(self.offset)
                        self._numbers = self._parse(stream.read(MAX_TEXT_BYTES + 1))
            flat = self._numbers[number]
        return flat.reshape(self.shape[1], self.shape[0]).T

    def _contents(self) -> Inflated:
        with self._lock:
            if self._inflated is None:
                self._inflated = Inflated(self.path, self.offset)
            return self._inflated

    def _parse(self, content: bytes) -> np.ndarray:
        words, wanted = content.split(), math.prod(self.shape)
        if len(words) < wanted:
            raise _too_short(self.path)
        try:
            numbers = np.array([float(word) for word in words[:wanted]])
        except ValueError:
            raise RequestError(f"{self.path}: its numbers cannot be read as text.") from None
        return numbers.reshape(self.planes, -1)


def file_size(path: Path) -> int:
    check_regular(path)
    with reading(path):
        return path.stat().st_size


def read_start(path: Path, count: int) -> bytes:
    """Up to ``count`` first bytes of a file."""
    with _opened(path) as stream:
        return stream.read(count)


def beside(path: Path, name: str) -> Path:
    """The file ``name`` that a header refers to: in the header's own folder or nowhere."""
    folder = path.resolve().parent
    plain = Path(name.replace("\\", "/"))
    try:
        if len(plain.parts) != 1 or name in (".", "..") or "\0" in name:
            raise RequestError(f"{path}: its data file is not in the same folder; refused.")
        found = (folder / plain).resolve()
        if found.parent != folder or not found.is_file():
            raise RequestError(f"{path}: its data file is not in the same folder.")
    except (OSError, RuntimeError, ValueError) as error:
        raise RequestError(f"{path}: its data file cannot be opened.") from error
    return found


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file for reading whose troubles are said in one sentence."""
    check_regular(path)
    with reading(path), path.open("rb") as stream:
        yield stream


def _too_short(path: Path) -> RequestError:
    return RequestError(f"{path} is cut off: it is shorter than its header says.")
