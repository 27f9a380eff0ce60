"""Writing files so that a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from engine.files.file_lock import abandoned, lock_file
from engine.spec.errors import DualscopeError


def write_atomic(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then rename it into place."""
    remove_partials(path)
    try:
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".partial"
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
    folder, beginning = path.absolute().parent, f".{path.name}."
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            partial = folder / name
            if not name.startswith(beginning) or not name.endswith(".partial"):
                continue
            if not partial.is_dir() and abandoned(partial):
                partial.unlink(missing_ok=True)


def write_bytes_atomic(path: Path, content: bytes) -> None:
    write_atomic(path, lambda stream: stream.write(content))


def _umask() -> int:
    """The process's umask, which mkstemp ignores (its files are private)."""
    current = os.umask(0o022)
    os.umask(current)
    return current
