"""A recorded run made again, from what its record says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from engine.files.record import REMOVED, RunRecord
from engine.runs.prepare import Prepared, make_run, prepare, recorded_job
from engine.runs.reopen import OTHER_PRIOR
from engine.runs.run import Run
from engine.solvers.iteration import Iteration
from engine.spec.control import RunControl
from engine.spec.errors import RequestError

MOST_THREADS = 1024
Tick = Callable[[Iteration], None]


def prepare_again(
    record: RunRecord, path: Path, input: str | None = None, device: str | None = None
) -> Prepared:
    """The record's job with its files read; refused when they are not those of the record.

    A de-identified record does not name its ``input``; its hash says whether it is the same.
    """
    job = recorded_job(record, str(path), {} if input is None else {"input": input})
    if job.input == REMOVED:
        raise RequestError(f"{path} is de-identified: name its data with ⟦input⟧.")
    job = dataclasses.replace(job, device=device or job.device)
    prepared = prepare(job, gate=False)
    if record.input.get("sha256") != prepared.dataset.sha256():
        raise RequestError(f"{job.input} has changed since {path} was written: its sha256 differs.")
    found = prepared.prior.info.sha256 if prepared.prior else None
    if (record.prior or {}).get("sha256") != found:
        raise RequestError(f"{path}: {OTHER_PRIOR}")
    return prepared


def iterations_of(record: RunRecord, path: Path) -> int:
    """How far the recorded run came: one that was stopped is made again that far."""
    if not record.history:
        raise RequestError(f"{path} holds no result: its run had no iteration.")
    return len(record.history)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """As many threads as the recorded run had (0: not known): another number gives other bits.

    An iterative method with a network makes visible differences of those.
    """
    before = torch.get_num_threads()
    if 1 <= count <= MOST_THREADS:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_again(
    prepared: Prepared,
    until: int,
    control: RunControl,
    tick: Tick | None = None,
    seed: int | None = None,
) -> Run | None:
    """The run up to iteration ``until``, on the same measurement with any ``seed``.

    None when ``control`` was cancelled before it got there.
    """
    own = RunControl()
    job = prepared.job if seed is None else dataclasses.replace(prepared.job, seed=seed)
    run = make_run(dataclasses.replace(prepared, job=job), control=own)
    for iteration in run:
        if tick is not None:
            tick(iteration)
        if not control.wait():
            own.cancel()
        elif iteration.k >= until:
            own.finish()
    return None if run.status == "cancelled" else run
