"""Files that are seen whole, the old or the new one, and locks that end with their process.

The system itself lets go of a lock when a process ends, however it ends, so neither ``kill -9``
nor a process number that is used again can mislead anyone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from engine.spec.errors import DualscopeError, RequestError

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


LONGEST_PREFIX = 200  # bytes


def write_atomic(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then rename it into place."""
    remove_partials(path)
    try:
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=partial_prefix(path.name), suffix=".partial"
        )
    except OSError as error:
        raise DualscopeError(f"Cannot write {path}: {error.strerror or error}.") from error
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as stream:  # some libraries read back what they write
            lock_file(stream)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, path)
    except OSError as error:
        raise DualscopeError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def remove_partials(path: Path) -> None:
    """Clear what killed writers of ``path`` left behind; what a living one writes is locked."""
    folder, beginning = path.absolute().parent, partial_prefix(path.name)
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            partial = folder / name
            if not name.startswith(beginning) or not name.endswith(".partial"):
                continue
            if not partial.is_dir() and abandoned(partial):
                partial.unlink(missing_ok=True)


def partial_prefix(name: str) -> str:
    """How the name of a file that is being written begins: not longer than a name may be."""
    if len(os.fsencode(name)) > LONGEST_PREFIX:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return f".{name}."


def check_name(path: Path) -> None:
    """Whether a file may have this name at all."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"Cannot write {path}: {reason}.") from error


def check_writable(path: Path) -> None:
    """Whether a file of this name can be made here, found out by making one and removing it."""
    check_name(path)
    try:
        descriptor, name = tempfile.mkstemp(
            dir=path.absolute().parent, prefix=partial_prefix(path.name), suffix=".partial"
        )
        os.close(descriptor)
        os.unlink(name)
    except OSError as error:  # the disk's fault, not the request's
        raise DualscopeError(f"Cannot write {path}: {error.strerror or error}.") from error


def write_bytes_atomic(path: Path, content: bytes) -> None:
    write_atomic(path, lambda stream: stream.write(content))


def _umask() -> int:
    """The process's umask, which mkstemp ignores (its files are private)."""
    current = os.umask(0o022)
    os.umask(current)
    return current
