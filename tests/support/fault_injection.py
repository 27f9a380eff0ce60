"""Faults put under the program from outside: nothing of this is in the product.

All our files are written by a few functions of Python. `watched` stands between the program and
these functions for one folder, as if that folder were a drive of its own, and lets a test raise
an error, or kill the process, at any of them.
"""

import errno
import os
import signal
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

FULL, READ_ONLY, GONE, BROKEN = errno.ENOSPC, errno.EROFS, errno.ESTALE, errno.EIO


@contextmanager
def watched(folder, strike):
    """Call ``strike(kind, path)`` around every write below ``folder``.

    Kinds: 'create' and 'created' of an interim file or folder, 'write' with half of the bytes on
    the disk, 'sync', 'rename' and 'renamed'. ``strike`` may raise, or never return.
    """
    folder, names = Path(folder).resolve(), {}
    make_file, make_folder, make_plain = tempfile.mkstemp, tempfile.mkdtemp, os.mkdir
    fdopen, fsync, replace = os.fdopen, os.fsync, os.replace

    def here(path):
        return path is not None and Path(path).resolve().is_relative_to(folder)

    def created(make):
        def making(*args, **options):
            place = options.get("dir")
            if not here(place):
                return make(*args, **options)
            strike("create", place)
            made = make(*args, **options)
            if isinstance(made, tuple):
                names[made[0]] = made[1]
            strike("created", place)
            return made

        return making

    def making_plain(path, *args, **options):
        if here(path):
            strike("create", path)
        return make_plain(path, *args, **options)

    def opening(descriptor, *args, **options):
        stream = fdopen(descriptor, *args, **options)
        name = names.pop(descriptor, None)
        return stream if name is None else Torn(stream, lambda: strike("write", name))

    def syncing(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}")
        if path.exists() and here(path):
            strike("sync", path.resolve())
        return fsync(descriptor)

    def replacing(source, target, **options):
        if not here(target):
            return replace(source, target, **options)
        strike("rename", target)
        replace(source, target, **options)
        strike("renamed", target)

    with ExitStack() as stack:
        for module, name, fake in (
            (tempfile, "mkstemp", created(make_file)),
            (tempfile, "mkdtemp", created(make_folder)),
            (os, "mkdir", making_plain),
            (os, "fdopen", opening),
            (os, "fsync", syncing),
            (os, "replace", replacing),
        ):
            stack.enter_context(mock.patch.object(module, name, fake))
        yield


class Torn:
    """A file whose every write can be cut in the middle."""

    def __init__(self, stream, strike):
        self._stream, self._strike = stream, strike

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return self._stream.__exit__(*args)

    def write(self, data):
        half = memoryview(data).nbytes // 2
        content = bytes(data)
        self._stream.write(content[:half])
        self._stream.flush()
        self._strike()
        self._stream.write(content[half:])
        return len(content)


def failing(folder, number, kind, after=0):
    """As `watched`: every event of a kind fails with a system's error, after some that do not."""
    seen = []

    def strike(happening, path):
        if happening == kind:
            seen.append(path)
            if len(seen) > after:
                raise OSError(number, os.strerror(number), str(path))

    return watched(folder, strike)


def dying(folder, at, events):
    """As `watched`: kill this process at event number ``at``; ``events`` gets what happened."""

    def strike(kind, path):
        if len(events) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        events.append(kind)

    return watched(folder, strike)


@contextmanager
def unreadable(folder, number=BROKEN):
    """Everything below a folder that exists but cannot be read: its drive has gone."""
    folder, opened, system_open = Path(folder).resolve(), Path.open, os.open
    builtin = open

    def check(path):
        if isinstance(path, (str, os.PathLike)) and Path(path).resolve().is_relative_to(folder):
            raise OSError(number, os.strerror(number), str(path))

    def path_open(self, *args, **options):
        check(self)
        return opened(self, *args, **options)

    def plain_open(path, *args, **options):
        check(path)
        return builtin(path, *args, **options)

    def low_open(path, *args, **options):
        check(path)
        return system_open(path, *args, **options)

    with (
        mock.patch.object(Path, "open", path_open),
        mock.patch("builtins.open", plain_open),
        mock.patch("io.open", plain_open),
        mock.patch.object(os, "open", low_open),
    ):
        yield


def strays(folder):
    """Interim files and folders that somebody left."""
    return sorted(
        p.name for p in Path(folder).rglob(".*") if p.name.endswith((".partial", ".part"))
    )
