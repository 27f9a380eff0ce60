"""Files that appear all together or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.export.formats import is_series
from engine.files.atomic import ROOM_LOCK, abandoned, lock_file
from engine.spec.errors import DualscopeError, RequestError


class Staging:
    """Written beside their places, then moved there: a cancelled export leaves nothing.

    ``overwrite`` lets existing files be replaced, and series folders that hold only slices.
    """

    def __init__(self, overwrite: bool, rooms: ExitStack) -> None:
        self.overwrite = overwrite
        self._stack, self._rooms = rooms, dict[Path, Path]()
        self._staged: list[tuple[Path, Path]] = []

    def place(self, final: Path) -> Path:
        """Where to write what is to become ``final``; asks first whether it may."""
        check_free([final], self.overwrite)
        if any(final == other for _, other in self._staged):
            raise RequestError(f"{final.name} would be written twice.")
        folder = final.absolute().parent
        if folder not in self._rooms:
            self._rooms[folder] = Path(self._stack.enter_context(_room(folder)))
        corner = self._rooms[folder] / str(len(self._staged))
        corner.mkdir()
        self._staged.append((corner / final.name, final))
        return corner / final.name

    def commit(self) -> None:
        """Move everything to its place; what came up meanwhile is still not overwritten."""
        check_free([final for _, final in self._staged], self.overwrite)
        for staged, final in self._staged:
            try:
                _move(staged, final)
            except OSError as error:
                reason = error.strerror or str(error)
                raise DualscopeError(f"Cannot write {final}: {reason}.") from error


@contextmanager
def staging(overwrite: bool) -> Iterator[Staging]:
    """What is not committed is gone at the end."""
    with ExitStack() as rooms:
        yield Staging(overwrite, rooms)


@contextmanager
def _room(folder: Path) -> Iterator[str]:
    _recover(folder)
    try:
        room = tempfile.mkdtemp(dir=folder, prefix=".dualscope-", suffix=".partial")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DualscopeError(f"Cannot write into {folder}: {reason}.") from error
    try:
        with Path(room, ROOM_LOCK).open("wb") as lock:
            lock_file(lock)
            yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _recover(folder: Path) -> None:
    """Clear the rooms of killed exports; a series taken aside by one goes back to its place."""
    for room in folder.glob(".dualscope-*.partial"):
        with contextlib.suppress(OSError):
            if not abandoned(room):
                continue
            for old in room.glob("*/old"):
                names = [path.name for path in old.parent.iterdir() if path != old]
                if names and not (folder / names[0]).exists():
                    os.replace(old, folder / names[0])
            shutil.rmtree(room, ignore_errors=True)


def _move(staged: Path, final: Path) -> None:
    if not final.is_dir():
        os.replace(staged, final)
        return
    old = staged.with_name("old")
    os.replace(final, old)
    try:
        os.replace(staged, final)
    except OSError:
        os.replace(old, final)
        raise


def check_free(paths: list[Path], overwrite: bool) -> None:
    """Refuse what is there already, unless it may be replaced and is of our kind."""
    for path in paths:
        if reason := foreign(path):
            raise RequestError(reason)
        if not overwrite and occupied(path):
            raise RequestError(f"{path.name} exists already: let it be replaced, or rename.")


def occupied(path: Path) -> bool:
    """An empty folder may be filled without asking."""
    return any(path.iterdir()) if path.is_dir() else os.path.lexists(path)


def foreign(path: Path) -> str:
    """Why an existing thing may never be replaced; empty when it may."""
    if path.is_dir() and not is_series(path):
        return f"{path.name} is a folder: choose another name."
    if not is_series(path) or not os.path.lexists(path):
        return ""
    if not path.is_dir():
        return f"{path.name} is a file, not a folder: choose another name."
    others = [entry.name for entry in path.iterdir() if not _is_slice(entry.name)]
    if others:
        return f"{path.name} holds other files than a series: choose another name."
    return ""


def _is_slice(name: str) -> bool:
    stem, dot, suffix = name.partition(".")
    return dot == "." and suffix == "dcm" and stem[:2] == "IM" and stem[2:].isdecimal()
