"""Runs with record and checkpoint on the disk, as the app leaves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from engine.export.outputs import physical_array
from engine.runs.prepare import make_run, prepare
from engine.spec.job import Job

DEMO = {"input": "demo:ct", "acquisition": {"views": 12}, "prior": "tv", "device": "cpu", "seed": 3}
PNP = {"nfe": 3, "cg_iterations": 3}


def save_disc(path: Path) -> Path:
    """A disc of 48 x 48 pixels in HU, as an array without a unit."""
    rows, columns = np.mgrid[-1:1:48j, -1:1:48j]
    np.save(path, np.where(rows**2 + columns**2 < 0.6, 40.0, -1000.0))
    return path


def record_run(
    path: Path, solver: str = "fbp", settings: dict[str, Any] | None = None, **job: Any
) -> np.ndarray:
    """Make a run; its image in HU or the MR scale, ``[B, H, W]``."""
    asked = {**DEMO, "solver": solver, "settings": settings or {}, **job}
    run = make_run(prepare(Job.from_dict(asked)), path, checkpoint_seconds=0.0)
    for _ in run:
        pass
    assert run.image is not None
    return physical_array(run.problem, run.image)
