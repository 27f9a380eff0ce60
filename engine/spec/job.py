"""A reconstruction as plain values: what the command line and the app ask for.

A job is JSON-able and complete: it goes into the run record, and a run is made from it again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from engine.spec.errors import RequestError


@dataclass(frozen=True)
class Job:
    """Input, acquisition, solver and all their options."""

    input: str
    options: dict[str, Any] = field(default_factory=dict)  # of the input
    slices: str | None = None
    acquisition: dict[str, Any] = field(default_factory=dict)
    solver: str = "dc-pnpdp"
    preset: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    prior: str = "auto"
    seed: int = 0
    device: str = "auto"
    precision: str = "fp32"  # of the denoiser
    deidentify: bool = False  # outputs and record name neither patient nor file
    ignore_checks: bool = False  # run data that a check calls unfit

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        names = {f.name for f in dataclasses.fields(cls)}
        if set(values) - names or "input" not in values:
            raise RequestError("The run record's job cannot be used: its entries are unknown.")
        try:
            job = cls(**values)
            wrong = [
                *(not isinstance(text, str) for text in (job.input, job.solver, job.prior)),
                *(not isinstance(text, str | None) for text in (job.slices, job.preset)),
                *(not isinstance(text, str) for text in (job.device, job.precision)),
                not isinstance(job.seed, int),
                not isinstance(job.settings, dict),
                not isinstance(job.acquisition, dict),
                not isinstance(job.options, dict),
                not isinstance(job.deidentify, bool),
                not isinstance(job.ignore_checks, bool),
            ]
        except TypeError:
            wrong = [True]
        if any(wrong):
            raise RequestError("The run record's job cannot be used: a value is of a wrong kind.")
        return job
