"""Hours of random work and faults, and whether anything was lost or leaked.

PYTHONPATH=tests/support python -m soak --minutes 30
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import torch

from engine.export import check_outputs
from engine.files.atomic import write_bytes_atomic
from engine.runs.prepare import versions
from engine.spec.errors import RequestError
from soak import tables
from soak.faults import ROOT, with_support
from soak.loop import Loop
from soak.probe import METHOD, RSS, Leak, Sample, leaks
from soak.recipes import make_inputs
from soak.tally import Tally
from soak.temp_dirs import environment, living_in
from soak.work import engine_tasks

PATIENCE_S: Final = 180.0  # for the window to end its last task
ENGINE, WINDOW = "engine", "window"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30.0, metavar="N", help="Default: 30.")
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)  # for tests
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="Default: 0.")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", default=".", help="For soak.json. Default: here."
    )
    parser.add_argument("--overwrite", action="store_true", help="Replace an older soak.json.")
    parser.add_argument(
        "--window",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Also soak a window, without a display. Default: on.",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing was lost and nothing leaked, 1 otherwise, 2 for a wrong request."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    add_options(parser)
    try:
        return run(parser.parse_args(arguments))
    except RequestError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def run(options: argparse.Namespace) -> int:
    seconds = 60 * options.minutes if options.seconds is None else options.seconds
    if not seconds > 0:
        raise RequestError(f"--minutes must be above 0, not {options.minutes:g}.")
    folder = Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"Cannot make {folder}: {error.strerror}.") from error
    (target,) = check_outputs([str(folder / "soak.json")], options.overwrite, (".json",))
    with tempfile.TemporaryDirectory(prefix="dualscope-soak-", ignore_cleanup_errors=True) as name:
        return Soak(Path(name).resolve(), target, seconds, options.seed).run(options.window)


class Soak:
    """The engine in this process and, beside it, a window in another one."""

    def __init__(self, folder: Path, target: Path, seconds: float, seed: int) -> None:
        self.folder, self.target, self.seconds, self.seed = folder, target, seconds, seed
        self.inputs = folder / "inputs"
        self.window: subprocess.Popen[bytes] | None = None
        self._died = ""
        self._written = -float("inf")

    def run(self, window: bool) -> int:
        home, random = self.folder / ENGINE, Random(self.seed)
        interrupted = False
        with living_in(home), one_thread():
            make_inputs(self.inputs)
            tasks = engine_tasks(home, self.inputs, random, window)
            loop = Loop(tasks, random, self.seconds, home, self._saw)
            try:
                if window:
                    self.window = self._start_window()
                loop.run()
            except KeyboardInterrupt:
                interrupted = True
            finally:
                self._end_window(interrupted)
        self._write(loop)
        tally, found = self._tally(loop), self._leaks(loop)
        tables.show(tally, found)
        print(f"The numbers are in {self.target}.")
        if interrupted:
            raise KeyboardInterrupt
        leaked = any(leak.leaked for rows in found.values() for leak in rows)
        return 0 if tally.clean and not leaked else 1

    # -- the window ---------------------------------------------------------------------------

    def _start_window(self) -> subprocess.Popen[bytes]:
        home = self.folder / WINDOW
        words = [home, self.inputs, self.seconds, self.seed]
        with (self.folder / "window.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "soak.window", *map(str, words)],
                env=with_support({**os.environ, **environment(home)}),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we tell it
            )

    def _end_window(self, interrupted: bool) -> None:
        """It ends by itself when the time is over; a window that does not has hung."""
        if self.window is None:
            return
        if interrupted and self.window.poll() is None:
            self.window.send_signal(signal.SIGTERM)
        try:
            self.window.wait(PATIENCE_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self.window.kill()
            self.window.wait()
        if self.window.returncode:
            log = (self.folder / "window.log").read_text("utf-8", "replace")
            self._died = f"The window ended with code {self.window.returncode}. {log[-1500:]}"

    # -- what was seen --------------------------------------------------------------------------

    def _saw(self, loop: Loop) -> None:
        """Every measurement: a line on the terminal; every minute: the file."""
        if self.window is not None and self.window.poll() is not None and loop.at < self.seconds:
            loop.stopped = True  # half of the soak is gone: no use in going on
        total = self._tally(loop).total()
        words = [f"{total.runs} tasks", f"{total.faults} faults", f"{total.lost} lost"]
        words.append(f"{total.unexpected + total.unsaid} unexpected")
        for process, samples in self._samples(loop).items():
            if samples and RSS in samples[-1]:
                words.append(f"{process} {samples[-1][RSS]:.0f} MB")
        print(f"{loop.at / 60:6.1f} min  {', '.join(words)}", flush=True)
        if time.monotonic() - self._written >= 60:
            self._write(loop)

    def _write(self, loop: Loop) -> None:
        """After every minute, so that a soak that is killed leaves its numbers."""
        found = self._leaks(loop)
        body = {
            "seed": self.seed,
            "asked seconds": self.seconds,
            "seconds": loop.at,
            "versions": versions(),
            "method": METHOD,
            **self._tally(loop).to_dict(),
            "leaks": {name: [leak.to_dict() for leak in rows] for name, rows in found.items()},
            "samples": self._samples(loop),
        }
        write_bytes_atomic(self.target, json.dumps(body, indent=1).encode())
        self._written = time.monotonic()

    def _tally(self, loop: Loop) -> Tally:
        both = Tally.from_dict(loop.tally.to_dict())
        theirs = Tally.from_dict(self._report())
        both.rows |= theirs.rows
        both.troubles += theirs.troubles
        if self._died:
            both.begin("window: process").unexpected(self._died)
        return both

    def _samples(self, loop: Loop) -> dict[str, list[Sample]]:
        found = {ENGINE: loop.samples}
        return found if self.window is None else found | {WINDOW: self._report().get("samples", [])}

    def _leaks(self, loop: Loop) -> dict[str, list[Leak]]:
        return {process: leaks(samples) for process, samples in self._samples(loop).items()}

    def _report(self) -> dict[str, Any]:
        path = self.folder / WINDOW / "report.json"
        return json.loads(path.read_bytes()) if path.exists() else {}


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums in another order have other bits, and small images gain nothing from threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


if __name__ == "__main__":
    sys.exit(main())
