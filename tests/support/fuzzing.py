"""Mutated files through the readers, in a process of their own with limits on time and memory.

    python tests/support/fuzzing.py FOLDER SEED COUNT

opens COUNT mutations of the files in FOLDER (a file there may be a folder: then one file in it is
mutated) and prints one JSON object: how many opened, how many were refused, and what went wrong
for the rest. Reading a slice and building the problem count as opening.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hdf5_trials import Trials
from mutations import mutate

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 5.0
ALLOCATION = 2 << 30


def damaged_copy(original: Path, folder: Path, rng: random.Random) -> Path:
    """``original`` with one of its files mutated, under its own name in ``folder``."""
    target = folder / original.name
    if original.is_dir():
        shutil.copytree(original, target)
        victim = rng.choice(sorted(p for p in target.rglob("*") if p.is_file()))
    else:
        for sibling in original.parent.glob(original.stem + ".*"):
            shutil.copyfile(sibling, folder / sibling.name)
        siblings = sorted(p for p in folder.iterdir() if p.is_file())
        victim = target if rng.random() < 0.8 else rng.choice(siblings)
    victim.write_bytes(mutate(victim.read_bytes(), rng))
    return target


def open_fully(path: Path, options: dict) -> None:
    """All that a person would do with a file before reconstructing."""
    from engine.data.source import open_input
    from engine.physics.units import IntensityMap
    from engine.spec.input_options import InputOptions

    dataset = open_input(str(path), InputOptions.from_dict(options))
    dataset.preview(len(dataset) - 1)
    dataset.sha256()
    intensity = IntensityMap("hu", 1000.0) if dataset.modality == "CT" else IntensityMap("mr")
    dataset.problem((0,), {}, intensity, 0)


class TooSlow(BaseException):
    pass


def fuzz(folder: Path, first: int, count: int) -> dict:
    from engine.data.readers.hdf5 import trial as hdf5_trial
    from engine.spec.errors import DualscopeError

    hdf5_trial.launch = Trials(cpu_seconds=1)  # type: ignore[assignment]
    options = json.loads((folder / "options.json").read_text())
    originals = sorted(folder / name for name in options)
    for original in originals:  # undamaged files must open, or nothing is tested
        open_fully(original, options[original.name])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ALLOCATION, hard))

    def on_alarm(number: int, frame: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, on_alarm)
    counts: dict = {"opened": 0, "refused": 0, "wrong": [], "slowest": 0.0}
    for seed in range(first, first + count):
        rng = random.Random(seed)
        original = originals[seed % len(originals)]
        with tempfile.TemporaryDirectory() as scratch:
            target = damaged_copy(original, Path(scratch), rng)
            print(seed, file=sys.stderr, flush=True)  # who was it, should the process die
            began = time.process_time()
            signal.setitimer(signal.ITIMER_REAL, 12 * SECONDS)
            try:
                open_fully(target, options[original.name])
                counts["opened"] += 1
            except DualscopeError as error:
                counts["refused"] += 1
                if "\n" in str(error).strip() or not str(error).strip():
                    counts["wrong"].append([seed, original.name, f"not one sentence: {error!r}"])
            except BaseException as error:
                counts["wrong"].append([seed, original.name, repr(error)[:300]])
            finally:
                with contextlib.suppress(TooSlow):
                    signal.setitimer(signal.ITIMER_REAL, 0)
            took = time.process_time() - began
            counts["slowest"] = max(counts["slowest"], took)
            if took > SECONDS:
                counts["wrong"].append([seed, original.name, f"took {took:.1f} s"])
    return counts


def run_fuzz(folder: Path, count: int, first: int = 0) -> dict:
    """``fuzz`` in a process of its own; a death is a finding, not the end."""
    total: dict = {"opened": 0, "refused": 0, "wrong": [], "slowest": 0.0}
    seed, end = first, first + count
    while seed < end:
        done = subprocess.run(
            [sys.executable, __file__, str(folder), str(seed), str(end - seed)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        )
        if done.returncode == 0:
            part = json.loads(done.stdout.splitlines()[-1])
            for name in ("opened", "refused"):
                total[name] += part[name]
            total["wrong"] += part["wrong"]
            total["slowest"] = max(total["slowest"], part["slowest"])
            break
        seeds = [int(line) for line in done.stderr.splitlines() if line.isdecimal()]
        if not seeds:
            raise AssertionError(done.stderr[-2000:])
        total["wrong"].append([seeds[-1], "?", f"died with {done.returncode}"])
        total["opened"] += seeds[-1] - seed  # of this part only the number is known
        seed = seeds[-1] + 1
    return total


if __name__ == "__main__":
    print(json.dumps(fuzz(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
