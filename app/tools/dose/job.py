"""One run per dose; import it in the worker's thread only, for the engine comes along."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from app.background import STEP, TABLE, Begun, Ended, Mailbox, Step, Table
from app.runs.run_group import recorded_scalars
from app.tasks import sentence_of
from app.tools.dose.model import DoseRequest
from engine.data.dataset import Dataset
from engine.metrics.profiles import default_profile, evaluate
from engine.runs.frames import pictures_of, plane_unit
from engine.runs.prepare import make_run, prepare
from engine.runs.run import Run
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, as_user_error
from engine.spec.job import Job

HEADINGS = ("dose", "PSNR dB", "SSIM", "direct dB", "direct SSIM", "seconds", "note")
WORDED = frozenset({0, 6})


@dataclass(frozen=True, eq=False)
class Tile:
    """The image at one dose, with all that a run of the main window would have of it."""

    value: float
    words: str
    job: dict[str, Any]
    label: str
    modality: str
    unit: str
    slices: tuple[int, ...]
    pixel_mm: tuple[float, float] | None
    images: np.ndarray  # [1, H, W]
    reference: np.ndarray | None
    metrics: dict[str, float]
    direct: dict[str, float]  # of FBP or the zero-filled image
    history: tuple[dict[str, float], ...]
    verdicts: dict[str, str]
    seconds: float
    keep: Callable[[Path], None] = field(repr=False)  # record and checkpoint


def run_doses(asked: DoseRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """In the order of the values; a dose that cannot be is a row that says why."""
    rows: list[tuple[str, ...]] = []
    dataset: Dataset | None = None
    mailbox.post(Begun(len(asked.jobs), 0))
    began = time.monotonic()
    for number, (value, values) in enumerate(zip(asked.values, asked.jobs, strict=True)):
        words = asked.sweep.words(value)

        def tell(share: float, at: int = number, said: str = words) -> None:
            done = (at + share) / len(asked.jobs)
            spent = time.monotonic() - began
            left = spent * (1 - done) / done if done > 0 else None
            mailbox.put_frame(STEP, Step(said, done, left))

        tell(0.0)
        try:
            job = Job.from_dict(values)
            prepared = prepare(job, dataset)
            dataset = prepared.dataset
            run = make_run(prepared, control=control)
            started = time.perf_counter()
            for iteration in run:
                tell(iteration.k / iteration.K)
            if run.status != "done":
                return Ended("cancelled")
            tile = _tile(value, words, run, time.perf_counter() - started)
        except Exception as error:
            if not isinstance(as_user_error(error), DualscopeError):
                raise
            rows.append((words, *("–",) * 5, sentence_of(error)))
        else:
            rows.append(_row(tile))
            mailbox.post(tile)
        mailbox.put_frame(TABLE, Table(HEADINGS, tuple(rows), WORDED))
    return Ended("done")


def _tile(value: float, words: str, run: Run, seconds: float) -> Tile:
    problem = run.problem
    assert run.image is not None
    profile, direct = default_profile(problem.modality), {}
    if problem.reference is not None:
        first = problem.operator.pseudo_inverse(problem.measurement)
        direct = evaluate(
            profile,
            first,
            problem.reference,
            problem.intensity,
            support=problem.operator.support(),
        )
    return Tile(
        value=value,
        words=words,
        job=run.record.job,
        label=run.solver.label,
        modality=problem.modality,
        unit=plane_unit(problem, "image"),
        slices=tuple(problem.slices),
        pixel_mm=problem.pixel_mm,
        images=pictures_of(problem, run.image),
        reference=(None if problem.reference is None else pictures_of(problem, problem.reference)),
        metrics=dict(next(iter(run.record.metrics.values()), {})),
        direct=dict(direct),
        history=tuple(recorded_scalars(entry) for entry in run.record.history),
        verdicts=dict(run.record.verdicts),
        seconds=seconds,
        keep=run.keep,
    )


def _row(tile: Tile) -> tuple[str, ...]:
    figures = [
        _number(found.get(name), digits)
        for found in (tile.metrics, tile.direct)
        for name, digits in (("psnr", 2), ("ssim", 4))
    ]
    return (tile.words, *figures, f"{tile.seconds:.1f}", "")


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
