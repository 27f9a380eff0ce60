"""What leaves this computer: the prior, the numbers of a batch and the recipe of its operator.

No header, no file name, nothing that a person could be known by but the images themselves. A
system matrix is not sent: a worker builds it from the geometry, once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import secrets
from dataclasses import dataclass
from typing import Any

from distributed import Client
from torch import Tensor

from engine.files.record import REMOVED
from engine.physics.problem import Problem
from engine.priors.catalogue import ANALYTIC, chosen_name, prior_file
from engine.priors.prior import Prior
from engine.solvers.catalogue import find_solver
from engine.spec.errors import RequestError
from engine.spec.job import Job
from engine.workflows.volume.batches import Batch
from engine.workflows.volume.plan import VolumePlan

KEY_BYTES = 32


@dataclass(frozen=True)
class Parcel:
    """A batch as a worker gets it; its ``plan`` is of these slices alone."""

    run: str
    plan: VolumePlan
    batch: Batch
    problem: Problem
    prior_sha256: str
    key: bytes  # with which the answer is sealed: new for every parcel

    def pack(self) -> bytes:
        return pickle.dumps(self, protocol=5)

    @staticmethod
    def unpack(content: bytes) -> Parcel:
        """On a worker, which runs what it is sent in any case: that is what Dask is."""
        parcel = pickle.loads(content)
        assert isinstance(parcel, Parcel)
        return parcel


def make_parcel(
    run: str, plan: VolumePlan, batch: Batch, problem: Problem, prior_sha256: str
) -> Parcel:
    """Without whatever says where the data come from."""
    job = dataclasses.replace(plan.job, input=REMOVED, options={}, slices=None, prior=REMOVED)
    part = dataclasses.replace(
        plan, job=job, numbers=batch.computed, batches=(batch,), input_sha256=""
    )
    bare = dataclasses.replace(
        problem,
        measurement=_alone(problem.measurement),
        weights=_alone(problem.weights),
        reference=_alone(problem.reference),
        provenance={},
    )
    return Parcel(run, part, batch, bare, prior_sha256, secrets.token_bytes(KEY_BYTES))


def _alone(tensor: Any) -> Any:
    """Without the rest of the memory that it may be a part of; the order of axes is kept."""
    return tensor.clone() if isinstance(tensor, Tensor) else tensor


@dataclass(frozen=True)
class Delivery:
    """A formula goes by its name, a network as the bytes of its file."""

    content: bytes | str
    sha256: str

    def at(self, client: Client) -> Any:
        """Something to hand to tasks.

        The bytes are the result of a task: workers get them from each other, a dead holder's
        are made again, and they are forgotten with the client.
        """
        if isinstance(self.content, str):
            return self.content
        return client.submit(bytes, self.content, pure=False)


def delivery_of(job: Job, modality: str, prior: Prior) -> Delivery:
    """Of the prior that was loaded for a job."""
    solver = find_solver(job.solver)
    kind = solver.supervised if solver.needs_prior else None
    name, sha256 = chosen_name(job.prior, modality, kind), prior.info.sha256
    if name in ANALYTIC:
        return Delivery(name, sha256)
    path = prior_file(name)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RequestError(f"{path} has changed since it was opened.")
    return Delivery(content, sha256)
