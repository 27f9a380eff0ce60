"""Which autosaved runs belong to a window that is open, and which to one that died.

Every session keeps its runs in a folder of its own and holds an operating system's lock in it
as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

from engine.files.file_lock import lock_file
from engine.spec.errors import DualscopeError

LOCK_NAME = "session.lock"


class SessionFolder:
    """The folder for this session's runs, locked until `close`.

    Parameters
    ----------
    root : the folder that holds the sessions' folders
    """

    def __init__(self, root: Path) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.path = root / f"{stamp}-{uuid.uuid4().hex[:6]}"
        try:
            self.path.mkdir(parents=True)
            self._stream = (self.path / LOCK_NAME).open("wb")
        except OSError as error:
            reason = error.strerror or str(error)
            raise DualscopeError(f"Runs cannot be kept in {root}: {reason}.") from error
        lock_file(self._stream)  # where locks do not work, a second window sees more than it should

    def close(self) -> None:
        """The runs stay; a folder without any goes."""
        if self._stream.closed:
            return
        self._stream.close()
        clear_empty(self.path)


def is_alive(folder: Path) -> bool:
    """Whether the session of a folder is open somewhere, perhaps in this very process."""
    try:
        with (folder / LOCK_NAME).open("r+b") as stream:
            return not lock_file(stream)
    except OSError:
        return False  # no lock: nobody has it


def clear_empty(folder: Path) -> None:
    """Remove the folder of a session that has ended, if it holds nothing any more."""
    with contextlib.suppress(OSError):
        if all(name == LOCK_NAME for name in os.listdir(folder)):
            (folder / LOCK_NAME).unlink(missing_ok=True)
            folder.rmdir()
