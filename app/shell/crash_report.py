"""Crash reports: what is in one, and where they are kept. No Qt objects here."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

import engine
from app.shell.privacy import clean
from engine.files.atomic import write_bytes_atomic
from engine.files.folders import state_folder

MOST_REPORTS: Final = 20  # older ones are removed
PREFIX: Final = "crash-"
RUNNING: Final = "running-"  # faulthandler writes here; gone after a clean end
SHOWN: Final = "shown.txt"
LARGEST: Final = 1 << 20
# what faulthandler begins with, on every system
FATAL: Final = ("Fatal Python error", "Windows fatal exception")


def versions() -> dict[str, str]:
    """Of the program and what it stands on; torch only when it was loaded."""
    found = {"Dualscope": engine.__version__, "Python": platform.python_version()}
    for name in ("PySide6-Essentials", "pyqtgraph", "numpy", "pydicom"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    torch = sys.modules.get("torch")
    found["torch"] = str(getattr(torch, "__version__", "not loaded"))
    return found


def report_text(what: str, trace: str, device: str, log: Sequence[object] = ()) -> str:
    """Traces hold no local variables; paths and names are taken out of everything."""
    numbers = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "Dualscope crash report",
        f"Time      {time.strftime('%Y-%m-%d %H:%M:%S %z')}",
        f"Where     {what}",
        f"Versions  {numbers}",
        f"Platform  {platform.system()} {platform.release()}, {platform.machine()}",
        f"Device    {device or 'not chosen yet'}",
        "",
        trace.rstrip(),
    ]
    if log:
        lines += ["", f"Last {len(log)} lines of the log:", *map(str, log)]
    return clean("\n".join(lines)) + "\n"


class CrashFolder:
    """The reports of this and of earlier sessions."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_folder() / "crashes"

    def write(self, text: str) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        path = self.path / f"{PREFIX}{stamp}.txt"
        number = 1
        while path.exists():
            number += 1
            path = self.path / f"{PREFIX}{stamp}-{number}.txt"
        write_bytes_atomic(path, text.encode())
        for old in self.reports()[:-MOST_REPORTS]:
            with contextlib.suppress(OSError):
                old.unlink()
        return path

    def reports(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.path.glob(f"{PREFIX}*.txt"), key=lambda path: path.stat().st_mtime_ns)

    def running_file(self) -> Path:
        self.path.mkdir(parents=True, exist_ok=True)
        return self.path / f"{RUNNING}{os.getpid()}.txt"

    def collect_faults(self) -> None:
        """Make readable reports of what faulthandler left when an earlier session died."""
        for path in self.path.glob(f"{RUNNING}*.txt"):
            if path.name == f"{RUNNING}{os.getpid()}.txt":
                continue
            with contextlib.suppress(OSError), path.open("rb") as stream:
                text = stream.read(LARGEST).decode("utf-8", "replace")
                # one without a word may belong to another window that is open now
                if any(word in text for word in FATAL):
                    stream.close()
                    self.write(clean(text))
                    path.unlink()

    def unshown(self) -> Path | None:
        """The newest report nobody has been told about."""
        shown = self._shown()
        fresh = [path for path in self.reports() if path.name not in shown]
        return fresh[-1] if fresh else None

    def mark_shown(self) -> None:
        names = [path.name for path in self.reports()]
        if names and not set(names) <= self._shown():
            write_bytes_atomic(self.path / SHOWN, "\n".join(names).encode())

    def _shown(self) -> set[str]:
        try:
            return set((self.path / SHOWN).read_text(encoding="utf-8").split())
        except (OSError, ValueError):
            return set()
