"""Watches what a program does to the machine while it handles a file from a stranger.

Python's audit events tell of every file opened for writing, every name changed or removed, every
program started and every socket made, whoever asks for it. An audit hook stays for good, so there
is one, and it listens only while a `Watch` is on.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

# event -> which of its arguments are paths that change
CHANGES = {
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "shutil.move": (0, 1),
    "shutil.copyfile": (1,),
}
ACTIONS = (
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.fork", "os.kill"),
    *("subprocess.Popen", "pickle.find_class", "ctypes.dlopen", "webbrowser.open", "pty.spawn"),
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Lists what happened outside of ``allowed`` folders between on and off.

    In this thread, or in ``all_threads``. Sockets count when they could leave the machine.
    """

    def __init__(self, *allowed: Path, all_threads: bool = False) -> None:
        self.all_threads = all_threads
        self.allowed = [str(folder.resolve()) for folder in allowed]
        self.written: list[str] = []
        self.acted: list[str] = []
        self.connected: list[str] = []
        self.thread = 0

    def __enter__(self) -> Watch:
        global _watch
        if not _installed:
            sys.addaudithook(_hear)
            _installed.append(True)
        self.thread, _watch = threading.get_ident(), self
        return self

    def __exit__(self, *trouble: object) -> None:
        global _watch
        _watch = None

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES:
                self._change(event, path)
        elif event in CHANGES:
            for number in CHANGES[event]:
                self._change(event, arguments[number])
        elif event in ACTIONS:
            self.acted.append(f"{event} {arguments!r}"[:300])
        elif event.startswith("socket.") and not _is_local(event, arguments):
            self.connected.append(f"{event} {arguments!r}"[:300])

    def _change(self, event: str, path: Any) -> None:
        if isinstance(path, int) or path == os.devnull:
            return  # a file that is open already
        folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        place = os.path.join(os.path.realpath(folder), name)  # a link itself, not its target
        if not any(place == f or place.startswith(f + os.sep) for f in self.allowed):
            self.written.append(f"{event} {os.fsdecode(path)}")


def _is_local(event: str, arguments: tuple[Any, ...]) -> bool:
    """Pairs of sockets inside a process, as event loops have them."""
    return event == "socket.__new__" and arguments[1] not in (socket.AF_INET, socket.AF_INET6)


_installed: list[bool] = []
_watch: Watch | None = None


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    watch = _watch
    if watch is not None and (watch.all_threads or watch.thread == threading.get_ident()):
        watch.hear(event, arguments)


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything below a folder with size and time, to compare with later."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(folder))] = (status.st_size, status.st_mtime_ns)
    return found
