"""HDF5 from strangers: no links out of the file, no data stored elsewhere, no huge reads.

h5py itself follows external links and external storage, which would read any file the user
can read. Everything here goes through ``item``, which refuses both, unless a person names a
folder into which links may lead: a detector's file is often a frame whose arrays lie beside it
(NeXus). ``allow`` says, for as long as it lasts, where that is; without it there is no such place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from engine.data.readers.hdf5 import trial as hdf5_trial
from engine.files.budget import Budget
from engine.files.path_safety import check_regular, fault_of_place
from engine.spec.errors import DescriptionNeeded, RequestError

MAX_ITEMS = 10_000
MAX_TEXT = 16 << 20
MAX_HOPS = 8  # links that lead to links
_budget: ContextVar[Budget | None] = ContextVar("_budget", default=None)


@contextmanager
def open_h5(path: Path) -> Iterator[h5py.File]:
    """The file, for reading; whatever h5py finds wrong inside it becomes one sentence."""
    token = _budget.set(Budget(path, path.name))
    try:
        hdf5_trial.check(path)
        with others_closed(), h5py.File(path, "r", locking=False) as file:
            yield file
    except RequestError:
        raise
    except hdf5_trial.Damaged as error:
        raise RequestError(f"{path} is damaged: {error}.") from error
    except PermissionError as error:
        raise RequestError(f"{path} may not be read: {error.strerror}.") from error
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise RequestError(f"{path} cannot be read: it is damaged or not an HDF5 file.") from error
    finally:
        _budget.reset(token)


def budget_of(node: h5py.Group | h5py.Dataset) -> Budget:
    """What may still be spent on the file that is open."""
    return _budget.get() or Budget(Path(node.file.filename), _file(node))


def item(group: h5py.Group, name: str, hops: int = 0) -> h5py.Group | h5py.Dataset | None:
    """The object at ``name`` (a path), if it is there and lies in this very file."""
    here: h5py.Group | h5py.Dataset = group
    budget_of(group).visit(1 + name.count("/"))
    for part in name.strip("/").split("/"):
        # `part in here` would follow a link to see whether it leads anywhere
        if not isinstance(here, h5py.Group) or not here.id.links.exists(part.encode()):
            return None
        here = here[part] if lies_inside(here, part) else _linked(here, part, name, hops)
    if isinstance(here, h5py.Dataset) and (here.external or here.is_virtual):
        return _gathered(here, name, hops)
    return here


def _linked(group: h5py.Group, part: str, name: str, hops: int) -> h5py.Group | h5py.Dataset:
    """What a link leads to, where links are allowed."""
    if allowed() is None:
        raise _not_allowed(group, f"'{name}' is a link to elsewhere; refused.")
    link = group.get(part, getlink=True)
    if hops >= MAX_HOPS or not isinstance(link, h5py.SoftLink | h5py.ExternalLink):
        raise RequestError(f"{_file(group)}: '{name}' is a link that cannot be followed.")
    if isinstance(link, h5py.ExternalLink):
        start: h5py.Group = open_other(Path(group.file.filename), link.filename)
    else:
        start = group.file if link.path.startswith("/") else group
    found = item(start, link.path, hops + 1)
    if found is None:
        raise RequestError(
            f"{_file(group)}: '{name}' is a link to '{link.path}', which is not there."
        )
    return found


def _not_allowed(node: h5py.Group | h5py.Dataset, what: str) -> DescriptionNeeded:
    return DescriptionNeeded(
        f"{_file(node)}: {what} ⟦allow_links⟧ FOLDER follows links into a folder that you name.",
        ("allow_links",),
        (str(Path(node.file.filename).absolute().parent),),
    )


def _gathered(dataset: h5py.Dataset, name: str, hops: int) -> h5py.Dataset:
    """A dataset whose numbers lie in other files, all of them in the allowed folder.

    HDF5 finds those files itself: it is given the folder of each, and only plain arrays there.
    """
    here = _file(dataset)
    if dataset.external:
        raise RequestError(f"{here}: '{name}' keeps its numbers in other files; refused.")
    if allowed() is None:
        raise _not_allowed(dataset, f"'{name}' keeps its numbers in other files; refused.")
    own = Path(dataset.file.filename)
    for source in dataset.virtual_sources():
        other = dataset.file
        if source.file_name != ".":
            # a bare name beside the file is the only one that HDF5 surely finds where we do
            if Path(source.file_name).name != source.file_name or "%" in source.file_name:
                raise RequestError(f"{here}: '{name}' needs '{source.file_name}': put it beside.")
            other = open_other(own, source.file_name)
        found = item(other, source.dset_name, MAX_HOPS) if hops < MAX_HOPS else None
        if not isinstance(found, h5py.Dataset) or found.is_virtual:
            raise RequestError(f"{here}: '{name}' needs '{source.dset_name}', which is no array.")
    access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
    access.set_virtual_prefix(str(own.resolve().parent).encode())
    return h5py.Dataset(h5py.h5d.open(dataset.file.id, dataset.name.encode(), access))


def lies_inside(group: h5py.Group, name: str) -> bool:
    """Whether the entry is an object of this file, not a link by name or to another file."""
    return group.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD


def address(node: h5py.Group | h5py.Dataset) -> tuple[int, int]:
    """Tells objects apart; one of them may have any number of names."""
    info = h5py.h5o.get_info(node.id)
    return int(info.fileno), int(info.addr)


def array(group: h5py.Group, name: str) -> h5py.Dataset | None:
    """The numeric dataset at ``name``; not read yet. None when it is missing."""
    found = item(group, name)
    if found is None:
        return None
    if (
        not isinstance(found, h5py.Dataset)
        or found.shape is None
        or found.dtype.kind not in "fiucb"
    ):
        raise RequestError(f"{_file(group)}: '{name}' is not an array of numbers.")
    check_chunks(found)
    return found


def check_chunks(dataset: h5py.Dataset) -> None:
    """A chunk is unpacked as a whole for each slice that is asked for."""
    if dataset.chunks:
        size = math.prod(dataset.chunks) * dataset.dtype.itemsize
        name = f"'{dataset.name}' is stored in pieces that are too large: one"
        Budget(Path(dataset.file.filename), _file(dataset)).expand(size, name)


def read(dataset: h5py.Dataset, index: Any = ()) -> np.ndarray:
    """``dataset[index]``, refused when it would be absurdly large."""
    shape = np.broadcast_to(np.uint8(0), dataset.shape)[index].shape  # without any memory
    size = math.prod(shape) * dataset.dtype.itemsize
    budget = budget_of(dataset)
    (budget.expand if dataset.chunks else budget.read)(size, f"'{dataset.name}'")
    if dataset.chunks:
        budget.work(_touched(dataset, index), f"'{dataset.name}'")
    return np.asarray(dataset[index])


def _touched(dataset: h5py.Dataset, index: Any) -> int:
    """Bytes of the chunks that are unpacked for ``dataset[index]``."""
    parts = index if isinstance(index, tuple) else (index,)
    count = 1
    for axis, (n, length) in enumerate(zip(dataset.shape, dataset.chunks, strict=True)):
        part = parts[axis] if axis < len(parts) and Ellipsis not in parts else slice(None)
        wanted = 1 if isinstance(part, int | np.integer) else n
        if isinstance(part, slice):
            wanted = len(range(n)[part]) * abs(part.step or 1)
        count *= min(-(-wanted // length) + 1, -(-n // length)) if wanted > 1 else 1
    return count * math.prod(dataset.chunks) * dataset.dtype.itemsize


def text(group: h5py.Group, name: str) -> str | None:
    """A string dataset (as headers are), or None."""
    found = item(group, name)
    if found is None:
        return None
    if not isinstance(found, h5py.Dataset) or found.size is None or found.nbytes > MAX_TEXT:
        raise RequestError(f"{_file(group)}: '{name}' is not a text.")
    value = found[()]
    if isinstance(value, np.ndarray):
        value = value.reshape(-1)[0] if value.size else b""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    raise RequestError(f"{_file(group)}: '{name}' is not a text.")


def _file(node: h5py.Group | h5py.Dataset) -> str:
    return Path(str(node.file.filename)).name


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
