"""One batch of slices, computed as the plan says: by this process, or by a worker far away."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from engine.metrics.profiles import default_profile, evaluate
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap
from engine.runs.frames import pictures_of
from engine.runs.prepare import make_run
from engine.runs.run import Run, image_sha256
from engine.spec.control import RunControl
from engine.workflows.volume.axes import has_contrast
from engine.workflows.volume.batches import Batch, SliceContext
from engine.workflows.volume.plan import VolumePlan


@dataclass(frozen=True)
class Step:
    """An iteration of a batch is done; of a worker far away its images are not known."""

    numbers: tuple[int, ...]  # of the slices that are kept
    k: int
    K: int
    images: Callable[[int], np.ndarray] | None = field(default=None, compare=False)
    # by the slice's number, in HU or the MR scale


@dataclass(frozen=True)
class SliceResult:
    """One slice in the prior's units, and what is known of it. Tensors are float32 on the CPU."""

    number: int
    image: Tensor  # [C, H, W]
    intensity: IntensityMap  # from these units to HU, or to the input's MR scale
    sha256: str  # of the image
    seconds: float = 0.0  # this slice's share of its batch
    nfe: int = 0
    residual: float = 0.0  # ||A x - y||
    metrics: dict[str, float] = field(default_factory=dict)  # of the modality's default profile
    reference: Tensor | None = None  # the true image, when the input has one


def compute_batch(
    plan: VolumePlan,
    batch: Batch,
    bench: SliceContext | None = None,
    control: RunControl | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> list[SliceResult]:
    """The slices that ``batch`` keeps; none if ``control`` has cancelled them."""
    steps = steps_of(plan, batch, bench or SliceContext(plan.job), control)
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        if on_step is not None:
            on_step(step)


def steps_of(
    plan: VolumePlan, batch: Batch, bench: SliceContext, control: RunControl | None = None
) -> Generator[Step, None, list[SliceResult]]:
    """Yields after every iteration and returns the slices, for whoever has to stay responsive."""
    began = time.perf_counter()
    with planned_threads(plan.threads):
        prepared = bench.prepared(batch.computed)
        problem, truth = prepared.problem, prepared.problem.reference
        if truth is not None and not has_contrast(problem.modality, problem.physical(truth)):
            problem.reference = None  # a blank slice at the end of a series is no error
        run = make_run(prepared, control=control)
    iterations = iter(run)
    while True:
        with planned_threads(plan.threads):  # around the step only: others may compute meanwhile
            iteration = next(iterations, None)
        if iteration is None:
            break
        seen = partial(_picture, problem, batch, iteration.image)
        yield Step(batch.kept, iteration.k, iteration.K, seen)
    if run.status != "done":
        return []
    seconds = (time.perf_counter() - began) / len(batch.kept)
    with planned_threads(plan.threads):
        return _results(problem, truth, run, batch, seconds)


@contextlib.contextmanager
def planned_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _results(
    problem: Problem, reference: Tensor | None, run: Run, batch: Batch, seconds: float
) -> list[SliceResult]:
    assert run.image is not None
    assert run.last is not None
    image, last = run.image, run.last
    residuals = (last.residual_x if last.image is last.x else last.residual_z).tolist()
    profile, found = default_profile(problem.modality), []
    for number in batch.kept:
        at = batch.computed.index(number)
        one, truth = image[at : at + 1], None if reference is None else reference[at : at + 1]
        metrics = {}
        if truth is not None and has_contrast(problem.modality, problem.physical(truth)):
            seen = problem.operator.of_slice(at).support()
            metrics = evaluate(profile, one, truth, problem.intensity, support=seen)
        found.append(
            SliceResult(
                number=number,
                image=_stored(one),
                intensity=problem.intensity,
                sha256=image_sha256(one),
                seconds=seconds,
                nfe=run.last.nfe,
                residual=residuals[at],
                metrics=metrics,
                reference=None if truth is None else _stored(truth),
            )
        )
    return found


def _picture(problem: Problem, batch: Batch, image: Tensor, number: int) -> np.ndarray:
    at = batch.computed.index(number)
    return pictures_of(problem, image[at : at + 1])[0]


def _stored(image: Tensor) -> Tensor:
    return image[0].detach().to("cpu", torch.float32).contiguous().clone()
