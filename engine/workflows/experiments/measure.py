"""What is measured of one method on one slice: a whole run, or one iteration from a given state."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from engine.metrics.profiles import default_profile, evaluate, quick
from engine.physics.random import SOLVER, make_generator
from engine.runs.prepare import Prepared, make_run
from engine.runs.run import Run
from engine.solvers.catalogue import find_solver
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, Sentence
from engine.workflows.experiments.store import Row

# (share of the case that is done, a word about it)
Tick = Callable[[float, str], None]
# `injection` looks at the iteration after this share of the schedule, where sigma is near 0.5.
LOOK_AT = 0.3


def whole_run(prepared: Prepared, control: RunControl, tick: Tick) -> tuple[Row, Tensor | None]:
    """The numbers and the image of a run; a run that fails says so in its row."""
    run = make_run(prepared, control=control)
    try:
        for iteration in run:
            tick(iteration.k / iteration.K, _note(iteration))
    except DualscopeError as error:
        run.record.message = Sentence(error)
    return run_row(run), run.image if run.status == "done" else None


def run_row(run: Run) -> Row:
    """Metrics of a run that failed are of an image nobody asked for: they are left out."""
    record = run.record
    metrics = record.metrics if run.status == "done" else {}
    return _row(run, metrics, record.history, record.timings)


def _row(
    run: Run,
    metrics: dict[str, dict[str, float]],
    history: list[dict[str, Any]],
    timings: dict[str, float],
) -> Row:
    last = history[-1] if history else {}
    return {
        "status": run.status,
        "message": run.record.message,
        "nfe": last.get("nfe"),
        **_headline(metrics),
        "residual": last.get("residual_z"),
        "dual": last.get("dual"),
        "seconds": timings.get("total"),
        "timings": timings,
        "metrics": metrics,
        "history": history,
        "job": run.record.job,
    }


def several_runs(prepared: Prepared, control: RunControl, tick: Tick) -> list[tuple[Row, Tensor]]:
    """As ``whole_run`` for each slice of a problem, in one run; nothing if that ended badly.

    A slice's time is its share of the run's.
    """
    problem, run = prepared.problem, make_run(prepared, control=control)
    count, profile = len(problem.measurement), default_profile(problem.modality)
    histories: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    try:
        for iteration in run:
            for i, history in enumerate(histories):
                history.append(_of_slice(run.record.history[-1], i) | _judged(quick, run, i))
            tick(iteration.k / iteration.K, _note(iteration))
    except DualscopeError:
        return []
    if run.status != "done" or run.image is None:
        return []
    shares = {name: seconds / count for name, seconds in run.record.timings.items()}
    rows = []
    for i, history in enumerate(histories):
        metrics = {profile: found} if (found := _judged(evaluate, run, i)) else {}
        rows.append((_row(run, metrics, history, shares), run.image[i : i + 1]))
    return rows


def _of_slice(entry: dict[str, Any], i: int) -> dict[str, Any]:
    return {name: value[i] if isinstance(value, list) else value for name, value in entry.items()}


def _judged(judge: Callable[..., dict[str, float]], run: Run, i: int) -> dict[str, float]:
    problem, own = run.problem, slice(i, i + 1)
    if problem.reference is None or run.image is None:
        return {}
    profile = default_profile(problem.modality)
    return judge(profile, run.image[own], problem.reference[own], problem.intensity)


def one_iteration(prepared: Prepared, control: RunControl, tick: Tick) -> tuple[Row, Tensor | None]:
    """DC-PnPDP with spectral homogenization up to one iteration, then that one as asked for.

    All variants so start from the same state with the same random numbers, and only the
    injection differs.
    """
    problem, prior, settings = prepared.problem, prepared.prior, prepared.settings
    budget = int(prepared.settings.to_dict()["nfe"])
    if budget < 2:
        raise RequestError("⟦nfe⟧ must be at least 2: the iteration looked at follows another.")
    warm = dataclasses.replace(settings, injection="sh")  # type: ignore[call-arg]
    run = make_run(dataclasses.replace(prepared, settings=warm), control=control)
    steps, until = iter(run), max(1, round(LOOK_AT * budget))
    state: Resume | None = None
    for before in steps:
        tick(before.k / (until + 1), _note(before))
        state = Resume(before.k, before.state)
        if before.k == until:
            break
    steps.close()  # type: ignore[attr-defined]
    if control.cancelled or state is None:
        return {"status": "cancelled"}, None
    device = problem.measurement.device
    generators = [make_generator(prepared.job.seed, device, SOLVER + n) for n in problem.slices]
    with torch.no_grad():
        solver = find_solver(prepared.job.solver)
        it = next(solver.iterate(problem, prior, settings, generators, state))
    tick(1.0, f"sigma {it.sigma:.3g}")
    metrics = {}
    if problem.reference is not None:
        profile = default_profile(problem.modality)
        seen = problem.operator.support()
        metrics = {
            profile: evaluate(profile, it.z, problem.reference, problem.intensity, support=seen)
        }
    psd = {name: curve.mean(dim=(0, 1)).tolist() for name, curve in it.psd.items()}
    row: Row = {
        "status": "done",
        "nfe": it.nfe,
        "sigma": it.sigma,
        **_headline(metrics),
        "off_white_db": off_white_db(psd["homogenized"], psd["target"]),
        "psd": psd,
        "metrics": metrics,
        "job": run.record.job | {"settings": settings.to_dict()},
    }
    return row, it.z


def off_white_db(seen: list[float], white: list[float]) -> float:
    """RMS distance of a spectrum from white noise of the level the denoiser is told."""
    gaps = [10 * math.log10(max(s, 1e-30) / w) for s, w in zip(seen, white, strict=True)]
    return math.sqrt(sum(gap**2 for gap in gaps) / len(gaps))


def _headline(metrics: dict[str, dict[str, float]]) -> dict[str, Any]:
    values = next(iter(metrics.values()), {})
    return {"psnr": values.get("psnr"), "ssim": values.get("ssim")}


def _note(iteration: Iteration) -> str:
    psnr = iteration.metrics.get("psnr")
    return "" if psnr is None else f"{psnr:.2f} dB"
