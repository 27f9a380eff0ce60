"""Reading a stranger's HDF5 file in a process that may crash, hang or run out of memory.

The HDF5 library trusts what it reads: a damaged file can make it loop forever or bring the
process down, and no exception handler helps. So every file is first walked through elsewhere,
with limits; the same calls on the same bytes then behave the same here.

Run as a script, this file is that other process; it imports nothing of ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import h5py

CPU_SECONDS = 3  # a loop burns them, a slow drive does not
SECONDS = 60.0
BYTES = 3 << 30
MAX_OBJECTS = 20_000
SMALL = 1 << 16


class Damaged(Exception):
    """The trial ended badly; the text says how."""


def check(path: Path) -> None:
    """Raise ``Damaged`` unless the file can be walked through; a file is tried once."""
    status = path.stat()
    verdict = _verdict(str(path), status.st_mtime_ns, status.st_size)
    if verdict:
        raise Damaged(verdict)


@lru_cache(maxsize=256)
def _verdict(path: str, modified: int, size: int) -> str:
    return launch(path)


def launch(path: str) -> str:
    """What went wrong in the other process, or nothing."""
    command = [sys.executable, "-I", __file__, path]
    if getattr(sys, "frozen", False):  # the packaged program runs modules of its own, not files
        command = [sys.executable, "-m", "engine.data.readers.hdf5.trial", path]
    try:
        done = subprocess.run(
            command, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "reading it does not end"
    return "" if done.returncode == 0 else "reading it fails"


def walk(path: str) -> None:
    """Touch everything that a reader might: names, attributes, texts, first and last numbers."""
    seen: set[int] = set()
    with h5py.File(path, "r", locking=False) as file:
        todo: list[h5py.Group | h5py.Dataset] = [file]
        while todo and len(seen) < MAX_OBJECTS:
            node = todo.pop()
            address = h5py.h5o.get_info(node.id).addr
            if address in seen:
                continue
            seen.add(address)
            for name in list(node.attrs)[:1000]:
                if node.attrs.get_id(name).get_storage_size() <= SMALL:
                    node.attrs[name]
            if isinstance(node, h5py.Dataset):
                _touch(node)
            else:
                for name in list(node)[:MAX_OBJECTS]:
                    if node.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD:
                        child = node[name]
                        if isinstance(child, h5py.Group | h5py.Dataset):
                            todo.append(child)


def _touch(dataset: h5py.Dataset) -> None:
    if not dataset.shape or dataset.external or dataset.is_virtual or not dataset.size:
        if dataset.shape == () and dataset.dtype.itemsize <= SMALL:
            dataset[()]
        return
    if dataset.chunks:
        dataset.id.get_num_chunks()
    if dataset.dtype.kind == "V":  # records: their variable parts are read by our own code
        return
    if dataset.dtype.itemsize <= SMALL:
        dataset[(0,) * dataset.ndim]
        dataset[tuple(n - 1 for n in dataset.shape)]


def main(path: str) -> int:
    if sys.platform != "win32":
        import resource

        for kind, most in (
            (resource.RLIMIT_AS, BYTES),
            (resource.RLIMIT_CPU, CPU_SECONDS),
            (resource.RLIMIT_CORE, 0),
        ):
            hard = resource.getrlimit(kind)[1]  # may be lower already, and cannot be raised
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
    walk(path)
    return 0


if __name__ == "__main__":
    code = 1
    try:
        code = main(sys.argv[1])
    except Exception:  # an error is a good end: the reader will meet it again and say so
        code = 0
    sys.stdout.flush()
    os._exit(code)
