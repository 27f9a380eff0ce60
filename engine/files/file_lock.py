"""Whether a file belongs to a process that lives.

The system itself lets go of a lock when a process ends, however it ends, so neither ``kill -9``
nor a process number that is used again can mislead anyone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from engine.spec.errors import RequestError

ROOM_LOCK = "lock"  # in a folder that is being filled


def lock_file(stream: BinaryIO) -> bool:
    """Take the lock without waiting; False when somebody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def abandoned(path: Path) -> bool:
    """Whether the writer of a partial file, or of a folder with a lock in it, has died."""
    try:
        with (path / ROOM_LOCK if path.is_dir() else path).open("r+b") as stream:
            return lock_file(stream)
    except FileNotFoundError:
        return path.is_dir()  # killed before it could lock
    except OSError:
        return False


_held: dict[Path, int] = {}  # by this process
_guard = threading.Lock()


@contextlib.contextmanager
def in_use(path: Path) -> Iterator[None]:
    """One process at a time works on the file; within a process uses may be nested.

    The lock is a small file beside it, which is gone afterwards. One that a killed process has
    left is free; where a file system knows no locks, or the folder is not to be written, whoever
    writes the file will say so.
    """
    place = path.absolute().with_name(f".{path.name[:200]}.lock")
    with _guard:
        first = _held.setdefault(place, 0) == 0
        _held[place] += 1
    stream: BinaryIO | None = None
    try:
        stream = _locked(place, path) if first else None
        yield
    finally:
        with _guard:
            _held[place] -= 1
        if stream is not None:
            with contextlib.suppress(OSError):  # first: nobody may lock a file that is to go
                place.unlink()
            stream.close()
            with contextlib.suppress(OSError):  # Windows removes no open file
                if sys.platform == "win32":
                    place.unlink()


def _locked(place: Path, path: Path) -> BinaryIO | None:
    for _ in range(10):
        try:
            stream = place.open("a+b")
        except OSError:
            return None
        try:
            if not lock_file(stream):
                raise RequestError(
                    f"{path} is in use by another process: wait until its run has ended, or end it."
                )
            if os.path.samestat(os.fstat(stream.fileno()), place.stat()):
                return stream
        except FileNotFoundError:  # its owner has just removed it
            pass
        except RequestError:
            stream.close()
            raise
        stream.close()
    return None
