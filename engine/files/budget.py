"""What reading one file may cost: bytes read, bytes made of them, objects visited, seconds.

Every number in a file is a claim. A budget compares it with what is really on the disk before
memory is asked for, and counts while the file is read: a few bytes cannot become gigabytes
(a compressed, sparse or lying file), and a few links cannot become a million objects. What is
read slice by slice has a budget for each slice, so a file of any honest size can be opened.
"""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from engine.files.path_safety import check_regular
from engine.spec.errors import RequestError

MIB: Final = 1 << 20
# environment variable -> default
LIMITS: Final = {
    "DUALSCOPE_MAX_READ_MIB": 8192,  # of one file at once, as it lies on the disk
    "DUALSCOPE_MAX_EXPANDED_MIB": 1024,  # unpacked or converted
    "DUALSCOPE_MAX_RATIO": 32,  # beyond SMALL, bytes in memory for one on the disk
    "DUALSCOPE_MAX_OBJECTS": 50_000,  # groups, fields, cells, links
    "DUALSCOPE_MAX_SECONDS": 60,  # of the processor, for one opening or one slice
}
SMALL: Final = 128 * MIB  # of memory may be made of any file: an empty image packs very tightly
MOST_EXTENTS: Final = 10_000


def limit(name: str) -> int:
    """The limit a person has set in the environment, or the default."""
    told = os.environ.get(name, "")
    return int(told) if told.isdecimal() and int(told) > 0 else LIMITS[name]


def size_in_words(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", MIB), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.{0 if count >= 10 * size else 1}f} {unit}"
    return f"{count} bytes"


def bytes_on_disk(path: Path) -> int:
    """How much of the file the disk holds; a sparse one claims more than that.

    Blocks that a file system compresses or keeps elsewhere are no holes, so the holes themselves
    are asked for.
    """
    status = path.stat()
    blocks = getattr(status, "st_blocks", None)
    if blocks is None or 512 * blocks >= status.st_size or not hasattr(os, "SEEK_DATA"):
        return status.st_size
    found = end = 0
    with path.open("rb", buffering=0) as stream:
        for _ in range(MOST_EXTENTS):
            try:
                start = os.lseek(stream.fileno(), end, os.SEEK_DATA)
                end = os.lseek(stream.fileno(), start, os.SEEK_HOLE)
            except OSError:  # no data behind here
                return found
            found += end - start
    return found


class Budget:
    """Of one file, for one opening or one slice; ``name`` is what the sentences call it."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        check_regular(path)
        self.path, self.name = path, str(path) if name is None else name
        self.bytes_read = self.bytes_expanded = self.objects = 0
        self._began = time.thread_time()
        self._seconds = limit("DUALSCOPE_MAX_SECONDS")
        self._room: int | None = None

    def read(self, count: int, what: str = "") -> None:
        """``count`` bytes are about to be read into memory as they are."""
        self.bytes_read += count
        self._afford(self.bytes_read, "DUALSCOPE_MAX_READ_MIB", what)

    def expand(self, count: int, what: str = "") -> None:
        """``count`` bytes of memory are about to be made of what the file holds."""
        self.bytes_expanded += count
        self._afford(self.bytes_expanded, "DUALSCOPE_MAX_EXPANDED_MIB", what)

    def work(self, count: int, what: str = "", how: str = "to be unpacked") -> None:
        """``count`` bytes are gone through on the way to what is asked for, and not kept."""
        self.tick()
        self._check_ratio(count, f"{self.name}{f': {what}' if what else ''}", how)

    def visit(self, count: int = 1) -> None:
        """Objects are about to be looked at."""
        self.objects += count
        most = limit("DUALSCOPE_MAX_OBJECTS")
        if self.objects > most:
            raise RequestError(
                f"{self.name} has too many or too deep structures: more than {most} objects "
                "(DUALSCOPE_MAX_OBJECTS)."
            )
        self.tick()

    def tick(self) -> None:
        """Called now and then by whoever reads for long."""
        if time.thread_time() - self._began > self._seconds:
            raise RequestError(
                f"{self.name} takes more than {self._seconds} s of the processor to read "
                "(DUALSCOPE_MAX_SECONDS)."
            )

    def _afford(self, count: int, name: str, what: str) -> None:
        self.tick()
        if count <= SMALL:
            return
        most, thing = limit(name) * MIB, f"{self.name}{f': {what}' if what else ''}"
        if count > most:
            raise RequestError(
                f"{thing} would need {size_in_words(count)} of memory at once; at most "
                f"{size_in_words(most)} are given ({name})."
            )
        self._check_ratio(count, thing, "of memory at once")

    def _check_ratio(self, count: int, thing: str, how: str) -> None:
        if count <= SMALL:
            return
        if self._room is None:
            self._room = bytes_on_disk(self.path)
        ratio = limit("DUALSCOPE_MAX_RATIO")
        if count > SMALL + ratio * self._room:
            raise RequestError(
                f"{thing} would need {size_in_words(count)} {how}, and only "
                f"{size_in_words(self._room)} of the file are on the disk: at most "
                f"{size_in_words(SMALL)} and {ratio} times that are given (DUALSCOPE_MAX_RATIO)."
            )


def check_whole(path: Path, name: str | None = None, held: bool = False) -> None:
    """Before a file is gone through from end to end: it must really be there.

    ``held``: all of it will be in memory at once.
    """
    budget, size = Budget(path, name), path.stat().st_size
    if held:
        budget.read(size)
    else:
        budget.work(size, how="to be read")


def read_small(path: Path, most: int, what: str) -> bytes:
    """A file that must be short, such as a text: never more than ``most`` bytes are read."""
    check_regular(path)
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise RequestError(f"{path.name} is too large to be {what}.")
    return content


def read_json(path: Path, most: int, what: str, strict: bool = False) -> Any:
    """JSON of a file that must be short; ``strict``: what cannot be written again is refused."""
    try:
        content = read_small(path, most, what)
        values = json.loads(content, parse_constant=_refuse if strict else None)
        if strict:
            json.dumps(values, ensure_ascii=False).encode()  # half a sign is none
    except OSError as error:
        raise RequestError(f"Cannot read {path.name}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{path.name} is not valid JSON.") from error
    return values


def _refuse(word: str) -> Any:
    raise ValueError(word)


class PartReader(io.BufferedReader):
    """A file of which at most ``most`` bytes are read at once.

    The standard library reads a zip archive's directory at once, however large, and makes an
    object of every entry before it can be asked how many there are.
    """

    def __init__(self, raw: io.FileIO, most: int) -> None:
        super().__init__(raw)
        self.most = most

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            place = self.tell()
            size = self.seek(0, 2) - place
            self.seek(place)
        if size > self.most:
            raise RequestError(
                f"its directory or a part of it is larger than {size_in_words(self.most)}"
            )
        return super().read(size)
