"""Total variation by FISTA, as `tv` was computed at first: older records are verified by it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.priors.analytic import tv_prox
from engine.solvers.classical import report
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.diagnostics import Guard, Stopwatch
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume


def fista(
    problem: Problem, strength: float, inner: int, iterations: int, resume: Resume | None
) -> Iterator[Iteration]:
    """min 1/2 ||A x - y||^2_W + lambda TV(x), with warm-started TV steps."""
    data = DataStep(problem, DataStepSettings())
    largest = 1.0 if problem.weights is None else float(problem.weights.max())
    curvature = problem.operator.norm() ** 2
    step, penalty = 1 / (1.02 * largest * curvature), strength * curvature
    if resume is None:
        x = problem.operator.pseudo_inverse(problem.measurement)
        state: dict[str, Tensor] = {"x": x, "ahead": x, "t": x.new_ones(())}
    else:
        state = dict(resume.state)
    x, ahead, dual = state["x"], state["ahead"], state.get("dual")
    t = float(state["t"])
    guard = Guard(x)
    for k in range(resume.k if resume else 0, iterations):
        clock, x_last = Stopwatch(x.device), x
        with clock("data"):
            descent = ahead - step * (data.normal(ahead) - data.back_projection)
            x, dual = tv_prox(descent, step * penalty, inner, dual)
        t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
        ahead, t = x + ((t - 1) / t_next) * (x - x_last), t_next
        guard.check(k + 1, TV_step=x)
        state = {"x": x, "ahead": ahead, "dual": dual, "t": torch.tensor(t, dtype=torch.float64)}
        yield report(problem, k + 1, iterations, x, state, clock.seconds)
