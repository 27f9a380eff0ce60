"""Whether a file belongs to a process that lives.

The system itself lets go of a lock when a process ends, however it ends, so neither ``kill -9``
nor a process number that is used again can mislead anyone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

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
