"""Folders of the soak's own, so that no file of a person is touched."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soak.probe import interim_files
from soak.tally import Mark

NAMES = {
    "TMPDIR": "tmp",
    "DUALSCOPE_CONFIG": "config",
    "DUALSCOPE_STATE": "state",
    "DUALSCOPE_CACHE": "cache",
}


def environment(home: Path) -> dict[str, str]:
    """For a process that lives in ``home``; one thread each, so that the same bits come out."""
    places = {variable: home / name for variable, name in NAMES.items()}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "OMP_NUM_THREADS": "1"} | {n: str(p) for n, p in places.items()}


@contextmanager
def living_in(home: Path) -> Iterator[None]:
    """The same for this process."""
    before = {name: os.environ.get(name) for name in environment(home)}
    os.environ.update(environment(home))
    tempfile.tempdir = None  # read TMPDIR again
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        tempfile.tempdir = None


@contextmanager
def room(home: Path, mark: Mark) -> Iterator[Path]:
    """An empty folder for one turn of a task; interim files in it at the end are a leak."""
    folder = home / "room"
    folder.mkdir(parents=True)
    try:
        yield folder
        if left := interim_files(folder):
            mark.unexpected(f"left behind: {', '.join(path.name for path in left)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
