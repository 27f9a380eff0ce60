"""Runs that were saved while they ran: which were cut short, and which are old.

Reads the records' few lines itself: the window asks at its start, long before torch is there.

Every session keeps its runs in a folder of its own and holds an operating system's lock in it
as long as it lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from engine.files.atomic import lock_file
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


KEEP_RUNS: Final = 40
KEEP_BYTES: Final = 2 << 30
LARGEST: Final = 64 << 20  # of a record that is worth looking into
CHECKPOINT: Final = ".checkpoint.safetensors"  # as engine.files.record names it


@dataclass(frozen=True)
class Unfinished:
    """A run whose process died; ``job`` is what `RunPresenter.resume_record` wants.

    ``input_name`` is the short name of the data: it may be a patient's, so it is for the screen
    only.
    """

    record_path: Path
    solver: str
    k: int
    K: int | None
    when: datetime
    input_name: str
    job: dict[str, Any]

    @property
    def words(self) -> str:
        """Such as 'dc-pnpdp, 23 of 50, 2025-05-12 14:03'."""
        of = f"{self.k} of {self.K}" if self.K else f"{self.k} iterations"
        return f"{self.solver}, {of}, {self.when.strftime('%Y-%m-%d %H:%M')}"


def unfinished(root: Path) -> list[Unfinished]:
    """Runs in ``root`` and in the folders of sessions that have died, newest first.

    A run without a checkpoint has nothing to go on from, and is not listed.
    """
    found = []
    for folder in _dead_folders(root):
        for path in _records(folder):
            body = _peek(path)
            if body is not None and _can_go_on(path, body):
                found.append(_unfinished(path, body))
    return sorted(found, key=lambda run: run.when, reverse=True)


def adopt(record_path: Path, folder: Path) -> Path:
    """Move an unfinished run into this session's own folder, so that no other takes it too."""
    target = folder / record_path.name
    try:
        os.replace(_checkpoint(record_path), _checkpoint(target))
        os.replace(record_path, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DualscopeError(f"The unfinished run cannot be taken over: {reason}.") from error
    clear_empty(record_path.parent)
    return target


def forget(record_path: Path) -> None:
    """Delete a run's checkpoint and record; the record last, so that no stray file is left."""
    try:
        _checkpoint(record_path).unlink(missing_ok=True)
        record_path.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DualscopeError(f"The autosaved run cannot be deleted: {reason}.") from error
    if not is_alive(record_path.parent):
        clear_empty(record_path.parent)


def prune(
    root: Path,
    pinned: Collection[Path] = (),
    keep: int = KEEP_RUNS,
    most_bytes: int = KEEP_BYTES,
) -> list[Path]:
    """Delete the oldest runs beyond ``keep`` or ``most_bytes``; which ones.

    Runs of a window that is open, pinned ones and unfinished ones stay and are not counted.
    """
    kept_apart = {path.absolute() for path in pinned}
    ended: list[tuple[float, int, Path]] = []
    for folder in _dead_folders(root):
        for path in _records(folder):
            body = _peek(path)
            if body is None or _can_go_on(path, body) or path.absolute() in kept_apart:
                continue
            with contextlib.suppress(OSError):
                ended.append((path.stat().st_mtime, _size(path), path))
    gone, total = [], 0
    for number, (_, size, path) in enumerate(sorted(ended, reverse=True)):
        total += size
        if number >= keep or total > most_bytes:
            with contextlib.suppress(DualscopeError):
                forget(path)
                gone.append(path)
    for folder in _dead_folders(root):
        if folder != root:
            _clear_partials(folder)
            clear_empty(folder)
    return gone


def _dead_folders(root: Path) -> Iterator[Path]:
    """The folder itself and those of sessions that nobody has open."""
    yield root
    with contextlib.suppress(OSError):
        for folder in sorted(path for path in root.iterdir() if path.is_dir()):
            if not is_alive(folder):
                yield folder


def _records(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in folder.glob("*.json") if path.is_file())
    return []


def _peek(path: Path) -> dict[str, Any] | None:
    """What is needed of a record, or None when it is no record or not a whole one."""
    try:
        if path.stat().st_size > LARGEST:
            return None
        body = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    wanted = {"job": dict, "input": dict, "status": str, "history": list}
    if not isinstance(body, dict) or body.get("format") != "dualscope-run":
        return None
    if not all(isinstance(body.get(name), kind) for name, kind in wanted.items()):
        return None
    return body


def _can_go_on(path: Path, body: dict[str, Any]) -> bool:
    return body["status"] == "running" and _checkpoint(path).exists()


def _unfinished(path: Path, body: dict[str, Any]) -> Unfinished:
    job, told = body["job"], body["input"]
    settings = job.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    steps = settings.get("nfe", settings.get("iterations"))
    last = body["history"][-1] if body["history"] else {}
    k = last.get("k") if isinstance(last, dict) else None
    return Unfinished(
        path,
        solver=str(job.get("solver", "")),
        k=k if isinstance(k, int) else len(body["history"]),
        K=steps if isinstance(steps, int) else None,
        when=datetime.fromtimestamp(path.stat().st_mtime),
        input_name=short_name(str(told.get("name") or job.get("input", ""))),
        job=job,
    )


def short_name(text: str) -> str:
    """The last part of a path of any system; 'demo:ct' as it is."""
    kind = PureWindowsPath if "\\" in text else PurePosixPath
    return kind(text).name or text


def _checkpoint(record_path: Path) -> Path:
    return record_path.with_name(record_path.stem + CHECKPOINT)


def _size(path: Path) -> int:
    files = (path, _checkpoint(path))
    return sum(file.stat().st_size for file in files if file.exists())


def _clear_partials(folder: Path) -> None:
    """What a killed writer left behind in the folder of a dead session."""
    for partial in folder.glob(".*.partial"):
        with contextlib.suppress(OSError):
            if partial.is_dir():
                shutil.rmtree(partial)
            else:
                partial.unlink()
