"""``dualscope bench busy``: one call of a prior beside other processes that compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from engine.spec.errors import DualscopeError

COMPETITORS = (0, 1, 2, 4)
CALLS = 5
# what a program imports first -> (its first line, changes of its environment)
PROGRAMS: dict[str, tuple[str, dict[str, str]]] = {
    "dualscope first": ("", {}),
    "torch first": ("import torch", {}),
    "torch first, as before": ("import torch", {"GOMP_SPINCOUNT": "300000"}),  # OpenMP's own
}
CHILD = """
{first}
import sys, time, json
from engine.priors.catalogue import load_prior
import torch
prior, sigma = load_prior({prior!r}, "CT", False), torch.tensor(0.2)
x, times = torch.randn(1, 1, 256, 256), []
with torch.no_grad():
    for _ in range({calls} + 2):
        start = time.perf_counter()
        prior(x, sigma)
        times.append(time.perf_counter() - start)
print(json.dumps(times[2:]))
"""


def measure(prior: str, rounds: int) -> list[dict[str, Any]]:
    """Median seconds of a call, and how many times those of a quiet machine they are."""
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for count in COMPETITORS:
            with competitors(count):
                for name in PROGRAMS:
                    times.setdefault((name, count), []).extend(_one(name, prior))
    rows = []
    for name in PROGRAMS:
        quiet = median(times[name, 0])
        for count in COMPETITORS:
            middle = median(times[name, count])
            rows.append(
                {
                    "case": name,
                    "competitors": count,
                    "ms a call": 1e3 * middle,
                    "times quiet": middle / quiet,
                }
            )
    return rows


@contextmanager
def competitors(count: int) -> Iterator[None]:
    """That many other processes, each busy with nothing."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _one(name: str, prior: str) -> list[float]:
    first, more = PROGRAMS[name]
    unset = {key: value for key, value in os.environ.items() if key != "GOMP_SPINCOUNT"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(first=first, prior=prior, calls=CALLS)],
        env={**unset, **more},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DualscopeError(f"A call could not be measured: {done.stderr[-2000:]}")
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found
