"""From a job to its files, its problem and its run: fresh, recorded or resumed."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import engine
from engine.data.dataset import Dataset
from engine.data.source import open_input, parse_slices
from engine.files.checkpoint import Checkpoint
from engine.files.path_safety import fault_of_place, is_network
from engine.files.record import REMOVED, RunRecord
from engine.physics.device import choose_device
from engine.physics.problem import Problem
from engine.priors.adapted import with_air, with_support
from engine.priors.catalogue import bundled, load_prior
from engine.priors.network_prior import check_precision, in_precision
from engine.priors.prior import Prior
from engine.priors.trained_scan import unfamiliar
from engine.runs.run import Run
from engine.solvers.catalogue import find_solver
from engine.solvers.presets import apply_preset
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.spec.input_options import PATH_OPTIONS, InputOptions
from engine.spec.job import Job
from engine.spec.numbers import numbers_in
from engine.spec.settings import Settings


def recorded_job(record: RunRecord, by: str, places: Mapping[str, Any] | None = None) -> Job:
    """The job of a record, which may be anybody's; ``places`` are those a person has named."""
    own = places or {}
    job = as_it_meant(Job.from_dict({**record.job, **own}), record)
    named = [("options", job.options.get(name)) for name in PATH_OPTIONS]
    for name, text in (("input", job.input), ("prior", job.prior), *named):
        if name not in own and isinstance(text, str) and (fault := fault_of_place(text)):
            raise RequestError(f"{by} names {fault}: nothing there is read unless you name it.")
    return job


def as_it_meant(job: Job, record: RunRecord) -> Job:
    """The job of an older record, with the settings that did not exist when it was written."""
    settings = find_solver(job.solver).settings_class.recorded(job.settings)
    measured = record.input.get("kind") in ("sinogram", "kspace")
    older = str(record.versions.get("dualscope")).startswith("0.1.")
    used = (record.prior or {}).get("name")
    # 'auto' is the best there is today; the record's run had the best of its day
    prior = str(used) if job.prior == "auto" and used in bundled() else job.prior
    scan: dict[str, Any] = {"noise": "none"} if measured and older else {}
    real = measured or job.acquisition.get("fine_grid", 1) != 1
    if real and record.operator.get("kind") == "ct" and "aperture" not in record.operator:
        scan["aperture"] = False  # its rays were lines
    acquisition = scan | job.acquisition
    # so had it the projector of its day, and another one rounds differently
    backend = record.operator.get("backend")
    if backend in ("native", "matrix-free") and acquisition.get("backend", "auto") == "auto":
        acquisition |= {"backend": backend}
    return dataclasses.replace(job, prior=prior, settings=settings, acquisition=acquisition)


@dataclass
class Prepared:
    """A job with its files read and its problem built."""

    job: Job
    dataset: Dataset
    problem: Problem
    prior: Prior | None
    settings: Settings
    notes: list[str] = field(default_factory=list)  # what is doubtful about this request

    @property
    def warnings(self) -> list[str]:
        return [*self.dataset.notices, *self.notes]


def check_job(job: Job) -> None:
    """Complain about options before long work."""
    if job.seed < 0:
        raise RequestError(f"⟦seed⟧ must not be negative, not {job.seed}.")
    solver = find_solver(job.solver)
    check_precision(job.precision, choose_device(job.device))
    if job.preset is None:
        solver.settings_class.from_dict(job.settings)


def open_dataset(job: Job) -> Dataset:
    return open_input(job.input, InputOptions.from_dict(job.options))


def prepare(
    job: Job,
    dataset: Dataset | None = None,
    problem: Problem | None = None,
    prior: Prior | None = None,
    numbers: Sequence[int] | None = None,
    gate: bool = True,
) -> Prepared:
    """Check everything and build the problem; the data, the problem and the prior may be shared.

    ``numbers`` are slices to take instead of the job's. Without ``gate`` data are taken whatever
    their checks say: what a record tells of was allowed to run when it was written.
    """
    check_job(job)
    solver, device = find_solver(job.solver), choose_device(job.device)
    dataset = dataset or open_dataset(job)
    if gate and not job.ignore_checks:
        dataset.refuse_blocked()
    if dataset.modality not in solver.modalities:
        raise RequestError(f"⟦solver⟧ {job.solver} is for {solver.modalities[0]} data only.")
    if "task" in job.acquisition and dataset.kind != "image":
        raise RequestError(f"⟦task⟧ is for images: {job.input} is a measured {dataset.kind}.")
    kind = solver.supervised if solver.needs_prior else None
    prior = prior or load_prior(job.prior, dataset.modality, kind)
    prior = in_precision(prior, job.precision)
    if problem is None or not _same_units(problem, prior):
        if numbers is None:
            numbers = parse_slices(job.slices, len(dataset))
        problem = dataset.problem(numbers, job.acquisition, prior.info.intensity, job.seed)
        problem = problem.to(device)
    values = apply_preset(job.preset, problem, job.solver) | job.settings
    settings = solver.settings_class.pick(values)
    used = None
    if solver.needs_prior:
        used = with_support(with_air(prior.to(device), problem), problem.operator)
    note = unfamiliar(prior.info, dataset.kind, job.acquisition) if used else None
    return Prepared(job, dataset, problem, used, settings, [note] if note else [])


def _same_units(problem: Problem, prior: Prior) -> bool:
    """Whether a shared problem is in the prior's units; those of MR belong to the data."""
    return problem.modality == "MR" or problem.intensity == prior.info.intensity


def versions() -> dict[str, str]:
    return {
        "dualscope": engine.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def new_record(prepared: Prepared) -> RunRecord:
    problem, job = prepared.problem, prepared.job
    return RunRecord(
        job={**job.to_dict(), "settings": prepared.settings.to_dict(), "preset": None},
        versions=versions(),
        device=str(problem.measurement.device),
        prior=prepared.prior.info.to_dict() if prepared.prior else None,
        input={
            "name": job.input,
            "kind": prepared.dataset.kind,
            "sha256": prepared.dataset.sha256(),
            "modality": prepared.dataset.modality,
            "pixel_mm": problem.pixel_mm[1] if problem.pixel_mm else None,
            "slices": list(problem.slices),
            "intensity": problem.intensity.to_dict(),  # what the checkpoint's numbers mean
            "facts": [dataclasses.asdict(fact) for fact in prepared.dataset.facts],
            "checks": [dataclasses.asdict(check) for check in prepared.dataset.checks],
            "warnings": prepared.warnings,
            **problem.provenance,
        },
        operator=problem.operator.describe(),
    )


def make_run(
    prepared: Prepared,
    record_path: Path | None = None,
    control: RunControl | None = None,
    checkpoint_seconds: float = 1.0,
) -> Run:
    return Run(
        prepared.problem,
        find_solver(prepared.job.solver),
        prepared.settings,
        prepared.prior,
        seed=prepared.job.seed,
        record=new_record(prepared),
        record_path=record_path,
        checkpoint_seconds=checkpoint_seconds,
        control=control,
    )


def resume_run(
    record_path: Path,
    control: RunControl | None = None,
    checkpoint_seconds: float = 1.0,
    input: str | None = None,
    own: bool = False,
) -> tuple[Prepared, Run]:
    """The interrupted run of a record, ready to go on where its checkpoint stands.

    A de-identified record does not name its ``input``; its hash says whether it is the same.
    What a record names that is our ``own`` needs no checking.
    """
    record = RunRecord.read(record_path)
    said = record.job.get("input")
    if said == REMOVED and input is None:
        raise RequestError(f"{record_path} is de-identified: name the INPUT again.")
    if input is not None and said != REMOVED and not is_network(str(said)):
        raise RequestError("⟦resume⟧ takes everything from the record: leave INPUT.")
    places = record.job if own else {"input": input} if input is not None else {}
    prepared = prepare(recorded_job(record, str(record_path), places), gate=False)
    if record.input.get("sha256") != prepared.dataset.sha256():
        raise RequestError(f"{prepared.job.input} has changed since {record_path} was written.")
    expected = (record.prior or {}).get("sha256")
    found = prepared.prior.info.sha256 if prepared.prior else None
    if expected != found:
        raise RequestError(f"The prior is not the one that {record_path} was started with.")
    run = make_run(prepared, record_path, control, checkpoint_seconds)
    run.record.history = record.history
    run.record.timings = numbers_in(record.timings)
    run.record.verdicts = record.verdicts
    checkpoint = Checkpoint.path_beside(record_path)
    if checkpoint.exists():
        run.resume_from(Checkpoint.read(checkpoint))
    else:
        run.record.history.clear()
        run.record.timings.clear()
    return prepared, run
