"""Links of an HDF5 file into other files: followed only into a folder that a person named.

A detector's file is often a frame whose arrays lie beside it (NeXus). ``allow`` says, for as
long as it lasts, where links may lead; without it there is no such place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path

import h5py

from engine.data.readers.hdf5 import trial as hdf5_trial
from engine.files.path_safety import check_regular, fault_of_place
from engine.spec.errors import RequestError

_folder: ContextVar[Path | None] = ContextVar("_folder", default=None)
_followed: ContextVar[list[Path] | None] = ContextVar("_followed", default=None)
_others: ContextVar[ExitStack | None] = ContextVar("_others", default=None)


@contextmanager
def allow(folder: str | Path | None) -> Iterator[list[Path]]:
    """Links may lead into ``folder``; gives the list of the files that were followed."""
    chosen = None if folder is None else Path(folder).resolve()
    if chosen is not None and not chosen.is_dir():
        raise RequestError(f"⟦allow_links⟧ {folder}: there is no such folder.")
    followed: list[Path] = []
    tokens = _folder.set(chosen), _followed.set(followed)
    try:
        yield followed
    finally:
        _folder.reset(tokens[0])
        _followed.reset(tokens[1])


def allowed() -> Path | None:
    return _folder.get()


@contextmanager
def others_closed() -> Iterator[None]:
    """Files that are opened on the way are closed with the first one."""
    with ExitStack() as stack:
        token = _others.set(stack)
        try:
            yield
        finally:
            _others.reset(token)


def open_other(start: Path, name: str) -> h5py.File:
    """The file that a link in ``start`` names, when it lies in the allowed folder.

    A name with folders that do not exist here (a link made at the beamline) is looked for by
    its last part, beside the file and in the allowed folder.
    """
    folder, stack = _folder.get(), _others.get()
    assert folder is not None  # asked for only where links are allowed
    assert stack is not None
    bare = Path(name).name
    candidates = [start.parent / bare, folder / bare]
    if not fault_of_place(name):  # no network address, no device
        candidates.insert(0, start.parent / name)
    found = next((one.resolve() for one in candidates if bare and one.is_file()), None)
    if found is None:
        raise RequestError(f"{start.name} has a link to '{bare}', which is not there.")
    if not found.is_relative_to(folder):
        raise RequestError(
            f"{start.name} has a link to '{bare}' outside of {folder}; refused. ⟦allow_links⟧ "
            "names the folder into which links may lead."
        )
    check_regular(found)
    try:
        hdf5_trial.check(found)
    except hdf5_trial.Damaged as error:
        raise RequestError(f"{found} is damaged: {error}.") from error
    followed = _followed.get()
    if followed is not None and found not in followed:
        followed.append(found)
    return stack.enter_context(h5py.File(found, "r", locking=False))
