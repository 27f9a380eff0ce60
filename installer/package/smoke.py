"""``python -m installer smoke FOLDER``: does a packaged build work with everything else hidden?

It gets an empty home, a plain PATH and none of our variables. Where strace is at hand, every file
it opens must be its own, the system's or in its home.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine import __version__
from engine.spec.errors import DualscopeError, RequestError
from installer.console import say
from installer.package.build import megabytes
from installer.package.trace import foreign_files, traced

PATIENCE_S: Final = 900.0
WINDOW_S: Final = 8.0  # how long the window stays open before it is asked to close
PLAIN_PATH: Final = "/usr/bin:/bin"
KEPT_ON_WINDOWS: Final = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "WINDIR")
OUTPUTS: Final = ("x.dcm", "x.png", "x.h5", "run.json")


@dataclass(frozen=True)
class Step:
    words: tuple[str, ...]
    says: str = ""  # what its output must hold
    leaves: tuple[str, ...] = ()  # files that must be there afterwards, not empty


STEPS: Final = (
    Step(("--version",), f"dualscope {__version__}"),
    Step(("doctor",), "ct-small"),
    Step(("audit",), "0 problems"),
    Step(
        ("reconstruct", "demo:ct", "--nfe", "5", "-o", *OUTPUTS[:3], "--record", OUTPUTS[3]),
        leaves=OUTPUTS,
    ),
    Step(("inspect", "x.dcm"), "image"),
    Step(("inspect", "x.h5"), "image"),  # tried first by another process of the program
    # the workstation by mouse and keyboard: opens the demo, reconstructs, exports
    Step(("-m", "app.tour", "tour", "--quick"), "ct-error"),
)


def executable(folder: Path) -> Path:
    """Of a folder, or of a macOS app."""
    names = ("dualscope.exe", "dualscope", "Contents/MacOS/dualscope")
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise RequestError(f"{folder} holds no packaged Dualscope: make one with package -o OUT.")
    return found[0].resolve()


def environment(home: Path) -> dict[str, str]:
    """What a new user's session has, and a screen that nobody sees."""
    if sys.platform != "win32":
        plain = {"HOME": str(home), "TMPDIR": str(home), "PATH": PLAIN_PATH, "LANG": "C.UTF-8"}
        return {**plain, "QT_QPA_PLATFORM": "offscreen"}
    places = dict.fromkeys(("USERPROFILE", "LOCALAPPDATA", "APPDATA", "TEMP", "TMP"), str(home))
    system = {name: os.environ[name] for name in KEPT_ON_WINDOWS if name in os.environ}
    return {**system, **places, "QT_QPA_PLATFORM": "offscreen"}


def smoke(folder: Path) -> int:
    program = executable(folder)
    with tempfile.TemporaryDirectory(prefix="dualscope-smoke-") as name:
        home = Path(name).resolve()
        for step in STEPS:
            run_step(program, step, folder.resolve(), home)
        exports = [path.name for path in (home / "tour" / "export").rglob("*") if path.is_file()]
        if not exports:
            raise DualscopeError("The workstation exported nothing.")
        say(f"  exported from the workstation: {', '.join(sorted(exports))}")
        if sys.platform != "win32":  # which cannot ask a window to close like that
            open_and_close(program, home)
        start = start_time(program, home)
    say(f"Size: {megabytes(folder):.0f} MB.")
    for name, words in (("first paint", "the first paint"), ("ready", "the engine is ready")):
        wall, computing = start[f"{name} s"], start[f"{name}, computing s"]
        say(f"Start until {words}: {wall:.1f} s, {computing:.1f} s of it computing.")
    return 0


def run_step(program: Path, step: Step, folder: Path, home: Path) -> None:
    began = time.monotonic()
    trace = home / "trace"
    command = traced([str(program), *step.words], trace)
    output = _run(command, home)
    name = " ".join(step.words[:3])
    if step.says not in output:
        raise DualscopeError(f"'{name}' did not say '{step.says}':\n{output}")
    for file in step.leaves:
        if not (home / file).is_file() or not (home / file).stat().st_size:
            raise DualscopeError(f"'{name}' left no {file}:\n{output}")
    foreign = foreign_files(trace, (folder, home)) if trace.is_file() else []
    if foreign:
        raise DualscopeError(f"'{name}' reads what is not its own: {', '.join(foreign[:10])}")
    say(f"  {name}: {time.monotonic() - began:.1f} s")


def _run(command: Sequence[str], home: Path) -> str:
    """Everything that was said; exit code 0 and no traceback, or it has failed."""
    done = subprocess.run(
        command,
        env=environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode or "Traceback" in done.stdout:
        words = " ".join(command)
        raise DualscopeError(f"{words} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def open_and_close(program: Path, home: Path) -> None:
    """The window as the menu opens it, closed as the system does when a session ends."""
    began = time.monotonic()
    with (home / "window.log").open("w+", encoding="utf-8") as log:
        window = subprocess.Popen(
            [str(program), "gui", "--demo", "ct"],
            env=environment(home),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            time.sleep(WINDOW_S)
            window.send_signal(signal.SIGTERM)
            code = window.wait(PATIENCE_S)
        finally:
            if window.poll() is None:
                window.kill()
                window.wait()
        log.seek(0)
        said = log.read()
    if code or "Traceback" in said:
        raise DualscopeError(f"The window ended with {code}:\n{said[-4000:]}")
    say(f"  gui --demo ct, closed again: {time.monotonic() - began:.1f} s")


def start_time(program: Path, home: Path) -> dict[str, float]:
    folder = home / "bench"
    folder.mkdir()
    words = ["-m", "app.bench", str(time.time()), str(folder), "20"]
    found: dict[str, float] = json.loads(_run([str(program), *words], home).splitlines()[-1])
    shutil.rmtree(folder)
    return found
