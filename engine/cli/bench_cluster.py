"""``dualscope bench cluster``: what the scheduling of slices costs, and how it grows."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from engine.physics.phantoms.stack import TorsoStack
from engine.spec.job import Job
from engine.workflows.cluster.compute_targets import cores
from engine.workflows.cluster.connection import Kept
from engine.workflows.cluster.run import ClusterRun
from engine.workflows.cluster.separate import Separate, separate_processes
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.plan import VolumePlan, make_plan
from engine.workflows.volume.reconstruct import Stored

NULL_SIZE, REAL_SIZE, REAL_SLICES, REAL_NFE = 16, 256, 16, 20
STEPS = (0.1, 0.2, 0.5, 1.0)  # of the longest run
MEGABYTE = 1e6


def measure(slices: int, prior: str = "auto") -> list[dict[str, Any]]:
    """Rows of three tables, each with the title of its ``table``."""
    with tempfile.TemporaryDirectory(prefix="dualscope-bench-") as folder:
        return [*_empty(Path(folder), slices), *_real(Path(folder), prior)]


class _Watched:
    """One run: its seconds, the processors' seconds and the memory of client and scheduler."""

    def __init__(self, path: Path, plan: VolumePlan, place: Separate) -> None:
        client, scheduler = psutil.Process(), psutil.Process(place.scheduler)
        self.memory: list[tuple[float, float]] = []
        marks = [int(len(plan.numbers) * share) for share in (0.1, 0.5, 1.0)]
        busy = _busy(client), _busy(scheduler)
        self.stored: list[tuple[float, float]] = []  # when, and the seconds its slice took
        begun = time.perf_counter()
        with VolumeFolder.create(path, plan) as volume:
            for event in ClusterRun(volume, Kept(place.site)):
                if isinstance(event, Stored):
                    self.stored.append((time.perf_counter(), event.result.seconds))
                    if event.done in marks:
                        self.memory.append((_megabytes(client), _megabytes(scheduler)))
        self.seconds = time.perf_counter() - begun
        self.client_s, self.scheduler_s = _busy(client) - busy[0], _busy(scheduler) - busy[1]
        self.slices = len(plan.numbers)

    @property
    def computing(self) -> float:
        return sum(seconds for _, seconds in self.stored)

    def idle_share(self, workers: int) -> float:
        """Of the workers' time between slices, as a share of the time they computed.

        It counts from when each may have stored its first slice: starting is no cost of a slice.
        """
        rest = self.stored[workers:]
        computing = sum(seconds for _, seconds in rest)
        elapsed = self.stored[-1][0] - self.stored[workers - 1][0]
        return (elapsed * workers - computing) / computing


def _busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _megabytes(process: psutil.Process) -> float:
    return process.memory_info().rss / MEGABYTE


# -- next to no work -----------------------------------------------------------------------------


def _empty(folder: Path, slices: int) -> list[dict[str, Any]]:
    """FBP of tiny slices, one a task: what is left is the scheduling."""
    runs: list[_Watched] = []
    with separate_processes(2) as place:
        for share in (STEPS[0], *STEPS):  # the first warms up
            count = max(1, round(slices * share))
            plan = _empty_plan(folder, count)
            runs.append(_Watched(folder / f"empty-{len(runs)}", plan, place))
    runs = runs[1:]
    counts, seconds = ([getattr(run, name) for run in runs] for name in ("slices", "seconds"))
    slope, start = np.polyfit(counts, seconds, 1)
    fitted = [slope * count + start for count in counts]
    rows = [
        {
            "table": "Slices through the scheduler, next to no work, two workers",
            "slices": run.slices,
            "seconds": run.seconds,
            "straight line": line,
            "client MB at 10, 50, 100 %": _path(run.memory, 0),
            "scheduler MB": _path(run.memory, 1),
            "client ms a task": 1e3 * run.client_s / run.slices,
            "scheduler ms a task": 1e3 * run.scheduler_s / run.slices,
        }
        for run, line in zip(runs, fitted, strict=True)
    ]
    last = runs[-1]
    client_s, scheduler_s = last.client_s / last.slices, last.scheduler_s / last.slices
    farthest = max(abs(a - b) / b for a, b in zip(seconds, fitted, strict=True))
    slowest = max(client_s, scheduler_s)
    facts = {
        "farthest from the straight line, %": 100 * farthest,
        "ms a slice, two workers": 1e3 * slope,
        "processor ms a task, client": 1e3 * client_s,
        "processor ms a task, scheduler": 1e3 * scheduler_s,
        "tasks a second, at most": 1 / slowest,
        "100 workers are all busy if a task takes longer than, s": 100 * slowest,
    }
    title = "What follows from it"
    return [*rows, *({"table": title, "case": k, "measured": float(v)} for k, v in facts.items())]


def _path(memory: list[tuple[float, float]], which: int) -> str:
    return " ".join(f"{pair[which]:.0f}" for pair in memory)


def _empty_plan(folder: Path, count: int) -> VolumePlan:
    path = folder / f"in-{count}.npy"
    random = np.random.default_rng(0)
    np.save(path, random.normal(0, 50, (count, NULL_SIZE, NULL_SIZE)).astype(np.float32))
    job = Job(
        str(path),
        options={"unit": "hu", "pixel_mm": 8.0},
        acquisition={"views": 4},
        solver="fbp",
        prior="tv",
        device="cpu",
    )
    return make_plan(job, batch=1, threads=1)


# -- real work -----------------------------------------------------------------------------------


def _real(folder: Path, prior: str) -> list[dict[str, Any]]:
    """One worker on one core, and two on two: how much faster, and at what cost."""
    stack, path = TorsoStack(seed=7, size=REAL_SIZE), folder / "real.npy"
    np.save(path, np.stack([stack.image(number) for number in range(REAL_SLICES)]))
    job = Job(
        str(path),
        options={"unit": "hu", "pixel_mm": stack.base.pixel_mm},
        settings={"nfe": REAL_NFE},
        prior=prior,
        device="cpu",
    )
    plan = make_plan(job, batch=1, threads=1)
    rows, alone = [], 0.0
    for workers in (1, 2):
        with separate_processes(workers) as place:
            _pin(place.workers)
            first = dataclasses.replace(job, slices=f"0:{2 * workers}")
            warm = make_plan(first, batch=1, threads=1)
            _Watched(folder / f"warm-{workers}", warm, place)
            run = _Watched(folder / f"real-{workers}", plan, place)
        alone = alone or run.seconds
        compute_s = run.computing / run.slices
        rows.append(
            {
                "table": f"{REAL_SLICES} slices of {REAL_SIZE} x {REAL_SIZE}, {REAL_NFE} steps",
                "workers, a core each": workers,
                "seconds": run.seconds,
                "times faster": alone / run.seconds,
                "compute s a slice": compute_s,
                "idle between slices, % of compute": 100 * run.idle_share(workers),
                "client and scheduler, % of compute": 100
                * (run.client_s + run.scheduler_s)
                / run.computing,
            }
        )
    return rows


def _pin(workers: tuple[int, ...]) -> None:
    """A worker a core, where the system can do that and has as many."""
    if not hasattr(psutil.Process, "cpu_affinity") or cores() < len(workers):
        return
    places: Callable[[], list[int]] = psutil.Process().cpu_affinity
    for process, core in zip(workers, places(), strict=False):
        psutil.Process(process).cpu_affinity([core])
