"""Reconstructing: at once, iteration by iteration, or with several methods."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engine.api.data import AnyPrior, Data, Source, find_prior, open, prior_label
from engine.api.keywords import checked_seed, in_keywords, known_names, refuse_unknown, taken
from engine.api.results import Comparison, Result, physical
from engine.data.dataset import Dataset
from engine.export.outputs import check_outputs
from engine.files.record import RunRecord
from engine.physics.device import choose_device
from engine.physics.problem import Problem
from engine.priors.adapted import with_air, with_support
from engine.priors.network_prior import check_precision, in_precision
from engine.priors.prior import Prior
from engine.priors.trained_scan import unfamiliar
from engine.runs.prepare import Prepared, new_record, versions
from engine.runs.run import Run as EngineRun
from engine.solvers.catalogue import parse_variant
from engine.solvers.iteration import Iteration
from engine.solvers.presets import apply_preset
from engine.solvers.solver import Solver
from engine.spec.errors import RequestError, StepFailed
from engine.spec.job import Job
from engine.spec.settings import Settings

AnyProblem = Problem | Data | str | Path
AnySolver = str | Solver | type[Solver]


class Step:
    """One iteration as arrays in physical units; ``iteration`` is the engine's own."""

    def __init__(self, problem: Problem, iteration: Iteration) -> None:
        self.iteration, self._problem = iteration, problem
        self.k, self.K = iteration.k, iteration.K  # 1 .. K
        self.sigma, self.nfe = iteration.sigma, iteration.nfe
        self.metrics, self.seconds = iteration.metrics, iteration.seconds

    @property
    def image(self) -> NDArray:
        """What finishing now would give."""
        return physical(self._problem, self.iteration.image)

    @property
    def x(self) -> NDArray:
        """The image that fits the data."""
        return physical(self._problem, self.iteration.x)

    @property
    def z(self) -> NDArray:
        """The denoised image."""
        return physical(self._problem, self.iteration.z)

    @property
    def residual(self) -> float:
        """||A z - y|| of all slices, in the prior's units."""
        return _norm(self.iteration.residual_z)

    @property
    def gap(self) -> float:
        """||x - z||."""
        return _norm(self.iteration.gap)

    def __repr__(self) -> str:
        psnr = f", PSNR {self.metrics['psnr']:.2f} dB" if "psnr" in self.metrics else ""
        return f"{self.k} of {self.K}, sigma {self.sigma:.3g}{psnr}"


class Run:
    """A reconstruction under way: loop over it for its steps; `result` is what there is so far.

    Leave the loop and loop again to go on. The buttons may be pressed in any thread; while it is
    paused a loop in another thread waits, and one in the same thread ends until `resume`.
    """

    def __init__(self, run: EngineRun, dataset: Dataset | None) -> None:
        self._run, self._dataset, self._steps = run, dataset, iter(run)
        self._paused_by: int | None = None

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Step:
        control = self._run.control
        if control.paused and self._paused_by == threading.get_ident():
            raise StopIteration
        with in_keywords():
            return Step(self._run.problem, next(self._steps))

    def pause(self) -> None:
        self._paused_by = threading.get_ident()
        self._run.control.pause()

    def resume(self) -> None:
        self._run.control.resume()

    def finish(self) -> None:
        """Stop after this step and keep its image as the result."""
        self._run.control.finish()

    def cancel(self) -> None:
        """Stop after this step; the run counts as cancelled."""
        self._run.control.cancel()

    @property
    def status(self) -> str:
        """'not started', 'running', 'done', 'finished early', 'cancelled' or 'failed'."""
        return self._run.status

    @property
    def result(self) -> Result:
        """The result; while the run goes on, that of the last step."""
        control = self._run.control
        if control.finishing or control.cancelled:
            for _ in self._steps:  # no step follows: the record is closed
                pass
        with in_keywords():
            return Result(self._run, self._dataset)


def reconstruct(
    problem: AnyProblem,
    solver: AnySolver = "dc-pnpdp",
    *,
    prior: AnyPrior | None = None,
    preset: str | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "fp32",
    record: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Reconstruct, all at once; the keywords are those of `run`."""
    going = run(
        problem,
        solver,
        prior=prior,
        preset=preset,
        seed=seed,
        device=device,
        precision=precision,
        record=record,
        **settings,
    )
    for _ in going:
        pass
    return going.result


def run(
    problem: AnyProblem,
    solver: AnySolver = "dc-pnpdp",
    *,
    prior: AnyPrior | None = None,
    preset: str | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "fp32",
    record: str | Path | None = None,
    **settings: Any,
) -> Run:
    """A reconstruction to loop over: ``for step in ds.run(problem, nfe=50): ...``.

    Parameters
    ----------
    problem
        From `simulate`, `Data.problem`, `ArrayOperator.problem` or `Problem` itself; or a
        measured scan, opened or not.
    solver
        A name ('dc-pnpdp', 'diffpir', 'tv', 'fbp' ..., a plug-in's), a name with settings
        ('dc-pnpdp:dual=off'), or a `Solver`, object or class.
    prior
        A name, a file, a `Prior` or a torch denoiser ``(x, sigma) -> x`` in the units of the
        problem; by default the one the problem was made for.
    preset
        'paper-svct', 'paper-lact', 'paper-mri', 'paper-code', 'recommended' or 'matched-50'.
    seed
        Of the solver's noise: the same seed on the same device gives the same bits.
    device, precision
        'auto', 'cpu', 'cuda' or 'mps'; 'fp32' or 'bf16'.
    record
        Keeps the run's record (.json) there, and its checkpoint beside it, from the start.
    settings
        Of the solver, called as on the command line: nfe=50, rho=0.1, cg_iterations=20 ...
    """
    with in_keywords():
        method, changes = _solver(solver)
        own = method.settings_class
        refuse_unknown(settings, known_names([own]), method.name)
        values = changes | taken(settings, [own])
        if preset is None:
            own.from_dict(values)  # complain before long work
        where = choose_device(device)
        check_precision(precision, where)
        made = _problem(problem, prior, checked_seed(seed))
        if made.modality not in method.modalities:
            raise RequestError(f"{method.name} is for {method.modalities[0]} data only.")
        made, chosen, label = _in_units_of(made, prior, method)
        made = made.to(where)
        used = None
        if chosen is not None:
            ready = in_precision(chosen, precision).to(where)
            used = with_support(with_air(ready, made), made.operator)
        complete = own.pick(apply_preset(preset, made, method.name) | values)
        job = Job("", solver=method.name, settings=complete.to_dict(), prior=label)
        job = dataclasses.replace(job, seed=checked_seed(seed), device=device, precision=precision)
        kept = None if record is None else check_outputs([str(record)], False, (".json",))[0]
        dataset = made.source.data.dataset if isinstance(made.source, Source) else None
        body = _record(job, made, used, complete)
        going = EngineRun(
            made, method, complete, used, seed=job.seed, record=body, record_path=kept
        )
        return Run(going, dataset)


def compare(
    problem: AnyProblem,
    solvers: Sequence[AnySolver] = ("fbp", "tv", "diffpir", "dc-pnpdp"),
    *,
    prior: AnyPrior | None = None,
    preset: str | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "fp32",
    **settings: Any,
) -> Comparison:
    """Several methods on the same problem with the same seed; keywords as of `run`.

    A solver takes the settings it knows; one that none of them knows is an error.
    """
    with in_keywords():
        if isinstance(solvers, str) or not solvers:
            raise RequestError("solvers must be a list, such as ['fbp', 'dc-pnpdp'].")
        methods = [_solver(solver)[0] for solver in solvers]
        known = [known_names([method.settings_class]) for method in methods]
        refuse_unknown(settings, set().union(*known), "compare()")
        made = _problem(problem, prior, checked_seed(seed))
        runs: dict[str, EngineRun] = {}
        dataset = None
        for solver, method, names in zip(solvers, methods, known, strict=True):
            label = solver if isinstance(solver, str) else method.name
            label = label if label not in runs else f"{label} ({len(runs) + 1})"
            own = {name: value for name, value in settings.items() if name in names}
            going = run(
                made,
                solver,
                prior=prior,
                preset=preset,
                seed=seed,
                device=device,
                precision=precision,
                **own,
            )
            with contextlib.suppress(StepFailed):  # its row says so; the others still count
                for _ in going:
                    pass
            runs[label], dataset = going._run, going._dataset
        return Comparison(list(runs.items()), dataset)


def _norm(values: Tensor) -> float:
    return float(np.linalg.norm(values.detach().cpu().numpy()))


def _solver(solver: AnySolver) -> tuple[Solver, dict[str, Any]]:
    """The method and the settings that were written behind its name."""
    if isinstance(solver, str):
        return parse_variant(solver)
    method = solver() if isinstance(solver, type) and issubclass(solver, Solver) else solver
    if not isinstance(method, Solver):
        raise RequestError(f"solver must be a name or a Solver, not {solver!r}.")
    name = getattr(method, "name", type(method).__name__)
    for key, value in (("name", name), ("label", name), ("settings_class", Settings)):
        if not hasattr(method, key):
            setattr(method, key, value)
    return method, {}


def _problem(problem: AnyProblem, prior: AnyPrior | None, seed: int) -> Problem:
    if isinstance(problem, Problem):
        return problem
    data = problem if isinstance(problem, Data) else open(problem)
    if data.kind == "image":
        raise RequestError(
            f"{data.dataset.description} is an image: measure it first, as with "
            "ds.simulate(data, views=20)."
        )
    return data.problem(prior="auto" if prior is None else prior, seed=seed)


def _in_units_of(
    problem: Problem, prior: AnyPrior | None, method: Solver
) -> tuple[Problem, Prior | None, str]:
    """The problem in the units of the prior that the method takes."""
    source = problem.source if isinstance(problem.source, Source) else None
    label = "auto" if source is None else source.label
    if not method.needs_prior:
        return problem, None, label if prior is None or not isinstance(prior, str) else prior
    if prior is None and source is not None and not method.supervised:
        chosen = source.prior
    else:
        asked = "auto" if prior is None else prior
        chosen = find_prior(asked, problem.modality, problem.intensity, method.supervised)
        label = prior_label(asked, chosen)
    if chosen.info.channels != problem.operator.image_shape[0]:
        raise RequestError(
            f"The prior {chosen.info.name} is for {chosen.info.channels} channels, and the image "
            f"has {problem.operator.image_shape[0]}."
        )
    if problem.modality == "MR" or chosen.info.intensity == problem.intensity:
        return problem, chosen, label
    if source is None:
        raise RequestError(
            f"The problem is not in the units of the prior {chosen.info.name}: "
            "make it with its intensity map."
        )
    return source.problem(chosen), chosen, label


def _record(job: Job, problem: Problem, used: Prior | None, settings: Settings) -> RunRecord:
    """All that is known of how the image is made; of a problem made by hand, what it says."""
    if isinstance(problem.source, Source):
        made = problem.source
        job = dataclasses.replace(
            job,
            input=made.data.path,
            options=made.data.options,
            slices=made.slices,
            acquisition=made.acquisition,
        )
        note = unfamiliar(used.info, made.data.kind, made.acquisition) if used else None
        notes = [note] if note else []
        return new_record(Prepared(job, made.data.dataset, problem, used, settings, notes))
    return RunRecord(
        job=job.to_dict(),
        versions=versions(),
        device=str(problem.measurement.device),
        prior=used.info.to_dict() if used else None,
        input={
            "name": "",
            "modality": problem.modality,
            "pixel_mm": problem.pixel_mm[1] if problem.pixel_mm else None,
            "slices": list(problem.slices),
            "intensity": problem.intensity.to_dict(),
            **problem.provenance,
        },
        operator=problem.operator.describe(),
    )
