"""What was asked for: an experiment on some slices, with the options that shape its numbers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from engine.spec.errors import RequestError
from engine.spec.job import Job
from engine.workflows.experiments.definition import Experiment, Method, Scan

QUICK_NFE_DIVISOR, QUICK_CG_ITERATIONS = 10, 10


def is_supervised(method: Method) -> bool:
    from engine.solvers.catalogue import SOLVERS  # torch comes along

    solver = SOLVERS.get(method.variant.split(":")[0])
    return solver is not None and solver.supervised


@dataclass(frozen=True)
class Request:
    """Everything that changes a number of the result; two equal requests share their cases."""

    experiment: Experiment
    inputs: tuple[str, ...] = ()  # none: phantoms
    options: dict[str, Any] = field(default_factory=dict)  # of the inputs
    slices: str | None = None
    count: int | None = None
    prior: str = "auto"
    device: str = "auto"
    seed: int = 0
    nfe: int | None = None
    cg_iterations: int | None = None
    quick: bool = False
    network: str = "auto"  # of the methods trained for one scan
    together: int = 1  # slices of one input that are computed at once
    precision: str = "fp32"  # of the denoiser
    only: tuple[str, ...] = ()  # labels of scans; none: all

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise RequestError(f"⟦seed⟧ must not be negative, not {self.seed}.")
        if self.count is not None and self.count < 1:
            raise RequestError(f"⟦count⟧ must be at least 1, not {self.count}.")
        known = [scan.label for scan in self.experiment.scans]
        if unknown := [label for label in self.only if label not in known]:
            raise RequestError(
                f"⟦only⟧ '{unknown[0]}' is no scan of {self.experiment.name}: "
                f"choose among {', '.join(known)}."
            )
        if self.together < 1:
            raise RequestError(f"⟦together⟧ must be at least 1, not {self.together}.")
        if self.nfe is not None and self.experiment.varies_nfe:
            raise RequestError(f"⟦nfe⟧ is not for {self.experiment.name}: it varies the budget.")
        if self.slices is not None and not self.inputs:
            raise RequestError("⟦slices⟧ needs an INPUT; ⟦count⟧ sets the number of phantoms.")
        if self.network != "auto" and not self.has_supervised:
            raise RequestError(f"⟦network⟧ is not for {self.experiment.name}: nothing uses it.")

    @property
    def has_supervised(self) -> bool:
        return any(is_supervised(method) for method in self.experiment.methods)

    @property
    def scans(self) -> list[Scan]:
        scans = self.experiment.scans
        return [scan for scan in scans if not self.only or scan.label in self.only]

    @property
    def slice_count(self) -> int:
        return self.count or (1 if self.quick else self.experiment.count)

    def budget(self, method: Method) -> int | None:
        """Denoiser calls, or None for a method without."""
        if method.nfe is None or self.nfe is not None:
            return method.nfe and self.nfe
        return max(1, method.nfe // QUICK_NFE_DIVISOR) if self.quick else method.nfe

    def job(self, scan: Scan, method: Method, input: str, number: int) -> Job:
        """One method on one slice; settings that cannot be are refused."""
        from engine.solvers.catalogue import parse_variant

        solver, changes = parse_variant(method.variant)
        cg_iterations = self.cg_iterations
        if cg_iterations is None and self.quick:
            cg_iterations = QUICK_CG_ITERATIONS
        wanted = {
            **self.experiment.settings,
            "nfe": self.budget(method),
            "cg_iterations": cg_iterations,
            **changes,
        }
        known = {f.name for f in dataclasses.fields(solver.settings_class)}
        settings = {k: v for k, v in wanted.items() if k in known and v is not None}
        solver.settings_class.from_dict(settings)
        return Job(
            input=input,
            options=self.options,
            slices=str(number),
            acquisition=dict(scan.acquisition),
            solver=solver.name,
            preset=scan.preset,
            settings=settings,
            prior=self.network if solver.supervised else self.prior,
            seed=self.seed,
            device=self.device,
            precision=self.precision,
        )

    def to_dict(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if not self.has_supervised:
            del values["network"]
        return values | {
            "experiment": self.experiment.name,
            "inputs": list(self.inputs),
            "only": list(self.only),
            "count": self.slice_count,
        }
