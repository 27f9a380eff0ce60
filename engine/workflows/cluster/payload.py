"""What leaves this computer: the numbers of a batch and the recipe of its operator.

No header, no file name, nothing that a person could be known by but the images themselves. A
system matrix is not sent: a worker builds it from the geometry, once.
"""

from __future__ import annotations

import dataclasses
import pickle
import secrets
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from engine.files.record import REMOVED
from engine.physics.problem import Problem
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
