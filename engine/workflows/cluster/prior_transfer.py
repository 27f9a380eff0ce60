"""The prior on its way to the workers: once to each, and again to one that has started anew."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from distributed import Client

from engine.priors.catalogue import ANALYTIC, chosen_name, prior_file
from engine.priors.prior import Prior
from engine.solvers.catalogue import find_solver
from engine.spec.errors import RequestError
from engine.spec.job import Job


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
