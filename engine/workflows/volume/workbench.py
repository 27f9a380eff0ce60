"""A job's data and prior, opened once and used for one batch of slices after another."""

from __future__ import annotations

from collections.abc import Sequence

from engine.data.dataset import Dataset
from engine.physics.device import choose_device
from engine.priors.catalogue import load_prior
from engine.priors.prior import Prior
from engine.runs.prepare import Prepared, check_job, open_dataset, prepare
from engine.solvers.catalogue import find_solver
from engine.spec.job import Job


class Workbench:
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
