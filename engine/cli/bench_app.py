"""``dualscope bench app``: how soon the workstation is there, and how steady it stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from engine.spec.errors import DualscopeError

# name of the measurement -> (words, unit, what it should be)
CASES = {
    "first paint s": ("cold start to the first paint", "s", "< 1.5"),
    "first paint, computing s": ("  of it computing", "s", ""),
    "ready s": ("cold start to ready, engine loaded", "s", "< 3"),
    "ready, computing s": ("  of it computing", "s", ""),
    "open CT demo s": ("open the CT demo", "s", ""),
    "open 512 x 512 s": ("open a slice of 512 x 512", "s", ""),
    "iterations per s": ("iterations of a fast run", "1/s", ""),
    "frames per s": ("frames shown of it", "1/s", "20 to 30, if it is that fast"),
    "longest gap ms": ("longest gap of the GUI thread", "ms", "< 50"),
    "longest gap, computing ms": ("  of it computing", "ms", "< 50"),
    "GUI load %": ("load of the GUI thread", "%", ""),
    "memory after the start MB": ("memory after the start", "MB", ""),
    "memory after the run MB": ("memory after the run", "MB", ""),
    "scroll 1/s": ("scrolling 512 x 512 x 300, slices painted", "1/s", "> 30"),
    "slab ms": ("maximum over 20 planes of 512 x 512 x 512", "ms", "< 50"),
}


def window(rounds: int, iterations: int = 200) -> list[dict[str, Any]]:
    """The median of several windows, each in a process of its own."""
    measured = [_one(iterations) for _ in range(rounds)]
    rows = []
    for name, (words, unit, target) in CASES.items():
        values = [value for one in measured if (value := one[name]) is not None]
        middle = median(values) if values else "not known here"
        rows.append({"case": words, "measured": middle, "unit": unit, "should be": target})
    return rows


def _one(iterations: int) -> dict[str, float | None]:
    with tempfile.TemporaryDirectory(prefix="dualscope-bench-") as folder:
        places = {"DUALSCOPE_CONFIG": f"{folder}/config", "DUALSCOPE_STATE": f"{folder}/state"}
        done = subprocess.run(
            [sys.executable, "-m", "app.bench", str(time.time()), folder, str(iterations)],
            env={**os.environ, **places},
            cwd=Path(__file__).resolve().parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise DualscopeError(f"The window could not be measured: {done.stderr[-2000:]}")
    found: dict[str, float | None] = json.loads(done.stdout.splitlines()[-1])
    return found
