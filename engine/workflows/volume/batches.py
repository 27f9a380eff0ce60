"""Which slices are computed together, and which of them are kept.

Slices that are coupled along z need neighbours on both sides: a slab is computed with a halo,
and the halo is thrown away, because the slabs beside it compute those slices in its middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.data.dataset import Dataset
from engine.physics.device import choose_device
from engine.physics.memory import PeakMemory
from engine.priors.catalogue import load_prior
from engine.priors.prior import Prior
from engine.runs.prepare import Prepared, check_job, make_run, open_dataset, prepare
from engine.solvers.catalogue import find_solver
from engine.solvers.sitcom import free_bytes
from engine.spec.errors import RequestError
from engine.spec.job import Job


@dataclass(frozen=True)
class Batch:
    """Slices by number; without coupling ``computed`` and ``kept`` are the same."""

    computed: tuple[int, ...]
    kept: tuple[int, ...]

    def to_dict(self) -> dict[str, list[int]]:
        return {"computed": list(self.computed), "kept": list(self.kept)}

    @classmethod
    def from_dict(cls, values: Any) -> Batch:
        try:
            batch = cls(tuple(values["computed"]), tuple(values["kept"]))
            usable = bool(batch.kept) and set(batch.kept) <= set(batch.computed)
        except (TypeError, KeyError):
            usable = False
        if not usable:
            raise RequestError("The volume's plan cannot be used: a batch of it is damaged.")
        return batch


def divide(numbers: Sequence[int], size: int, halo: int = 0) -> tuple[Batch, ...]:
    """Batches that keep ``size`` slices each and see ``halo`` more on either side."""
    return tuple(
        with_halo(numbers, begin, min(begin + size, len(numbers)), halo)
        for begin in range(0, len(numbers), size)
    )


def halves(batch: Batch, numbers: Sequence[int], halo: int = 0) -> tuple[Batch, Batch]:
    """The slices that a batch keeps as two batches, for less memory at a time."""
    begin = numbers.index(batch.kept[0])
    middle, end = begin + (len(batch.kept) + 1) // 2, begin + len(batch.kept)
    return with_halo(numbers, begin, middle, halo), with_halo(numbers, middle, end, halo)


def with_halo(numbers: Sequence[int], begin: int, end: int, halo: int) -> Batch:
    return Batch(
        tuple(numbers[max(0, begin - halo) : end + halo]),
        tuple(numbers[begin:end]),
    )


# How many slices to compute together.
#
# On a processor a CT data step reads the system matrix once for all slices of a batch. Measured at
# 256 x 256, 20 views and one thread, four together take 0.7 of the time of four one by one; eight
# gain nothing more, and the network gains nothing at all. Nothing is shared between MR slices.
# On a graphics card as many as half of its free memory holds, measured on one slice.

CT_TOGETHER = 4  # on a processor
SLAB, HALO = 8, 2  # slices kept and, on either side, thrown away, where neighbours are coupled
PROBE_STEPS = 2  # the first allocates what is kept, the second all that a step takes
MOST_TOGETHER = 256
SHARE = 0.5  # of the free memory
# Memory that a slice of a large batch takes on a processor, in images of its size: measured with
# the bundled priors it is somewhat less.
IMAGES_HELD = 100


def default_batch(first: Prepared, count: int, couples: bool) -> int:
    """For ``count`` slices like that of ``first``."""
    if first.problem.measurement.device.type == "cpu":
        together = CT_TOGETHER if first.problem.modality == "CT" else 1
        return min(SLAB if couples else together, count)
    return min(batch_of(probe_bytes(first), free_bytes(first.problem.measurement.device)), count)


def batch_of(slice_bytes: int, free: int) -> int:
    return max(1, min(MOST_TOGETHER, int(SHARE * free / max(1, slice_bytes))))


def probe_bytes(first: Prepared) -> int:
    """The peak that one slice adds on its device, by a run that is cut short."""
    device = first.problem.measurement.device
    run = make_run(first)
    with PeakMemory(device) as peak:
        for iteration in run:
            if iteration.k >= PROBE_STEPS:
                run.control.cancel()
    if peak.gb is None:  # nobody tells: as on a processor
        return held_bytes(first.problem.operator.image_shape)
    return max(1, int(peak.gb * 1e9))


def held_bytes(image_shape: Sequence[int]) -> int:
    return IMAGES_HELD * math.prod(image_shape) * torch.float32.itemsize


def fits(count: int, image_shape: Sequence[int], device: torch.device) -> bool:
    """Whether ``count`` slices can be expected to fit into memory all at once."""
    return count * held_bytes(image_shape) <= SHARE * free_bytes(device)


class SliceContext:
    """What a process keeps between batches; a worker may bring its own dataset and prior.

    System matrices stay in the engine's own cache, so a batch's operator costs next to nothing.
    """

    def __init__(
        self, job: Job, dataset: Dataset | None = None, prior: Prior | None = None
    ) -> None:
        check_job(job)
        self.job = job
        self.dataset = dataset or open_dataset(job)
        solver = find_solver(job.solver)
        kind = solver.supervised if solver.needs_prior else None
        self.prior = prior or load_prior(job.prior, self.dataset.modality, kind)

    def prepared(self, numbers: Sequence[int]) -> Prepared:
        """Slices ``numbers`` as one problem, ready to run."""
        job, device = self.job, choose_device(self.job.device)
        intensity = self.prior.info.intensity
        problem = self.dataset.problem(numbers, job.acquisition, intensity, job.seed).to(device)
        return prepare(job, self.dataset, problem, self.prior)
