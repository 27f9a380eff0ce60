"""What the outside world does to files, folders and processes; the product has no part in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
SUPPORT: Final = ROOT / "tests" / "support"
SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGINT") if hasattr(signal, name)
)
PATIENCE_S: Final = 120.0


def damage(path: Path, random: Random) -> None:
    """Cut a file short, empty it, or fill it with something else."""
    content = path.read_bytes()
    ways = (
        content[: random.randrange(1, max(len(content) // 2, 2))],
        b"",
        random.randbytes(min(len(content), 4096)),
        b"this is something else entirely\n" * 8,
    )
    path.write_bytes(random.choice(ways))


def take_folder(folder: Path, random: Random) -> None:
    """Make a folder read-only, or let it vanish; who may write anywhere only sees the latter."""
    if random.random() < 0.5:
        folder.chmod(0o500)
        if not os.access(folder, os.W_OK):
            return
    shutil.rmtree(folder)


def start(*words: object, module: str = "engine.cli") -> subprocess.Popen[str]:
    """A process of the program; Ctrl-C at the terminal does not reach it."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        cwd=ROOT,
        env=with_support(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def with_support(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment in which this package is found, too."""
    paths = [str(ROOT), str(SUPPORT), variables.get("PYTHONPATH", "")]
    return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def end(process: subprocess.Popen[str]) -> None:
    """In any case, and without a zombie."""
    if process.poll() is None:
        process.kill()
    process.communicate()


def wait_for(path: Path, process: subprocess.Popen[str]) -> bool:
    """Until a process has written ``path``; whether it did."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return path.exists()


def limit_files(process: subprocess.Popen[str], size: int) -> None:
    """No file of the process may grow beyond ``size`` bytes: to it, the disk is full."""
    import resource

    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))
