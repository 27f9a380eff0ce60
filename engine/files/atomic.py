"""Writing files so that a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from engine.files.file_lock import abandoned, lock_file
from engine.spec.errors import DualscopeError, RequestError

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
