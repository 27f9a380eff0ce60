"""Reconstruction without a prior, one file because each is a few lines.

FBP and zero-filled are the operator's own pseudo-inverse under the name of their modality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.iteration import Iteration
from engine.priors.prior import Prior
from engine.priors.tv import tv_prox
from engine.problem import Problem
from engine.random import Generators
from engine.settings import Settings, setting
from engine.solvers.cg import ConjugateGradients
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.diagnostics import Guard, Stopwatch, norms
from engine.solvers.sirt import SirtStep
from engine.solvers.solver import Resume, Solver


def report(
    problem: Problem,
    k: int,
    total: int,
    x: Tensor,
    state: dict[str, Tensor],
    seconds: dict[str, float],
    residual: Tensor | None = None,
) -> Iteration:
    """An Iteration of a method that has one image, no dual and no noise level."""
    residual = norms(problem.residual(x) if residual is None else residual)
    zero = torch.zeros_like(residual)
    return Iteration(
        k=k,
        K=total,
        sigma=0.0,
        z=x,
        x=x,
        image=x,
        residual_x=residual,
        residual_z=residual,
        gap=zero,
        dual=zero,
        state=state,
        seconds=seconds,
    )


class PseudoInverse(Solver):
    settings_class = Settings
    needs_prior = False

    def iterate(
        self,
        problem: Problem,
        prior: Prior | None,
        settings: Settings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        if resume is not None:
            return
        clock = Stopwatch(problem.measurement.device)
        with clock("data"):
            x = problem.operator.pseudo_inverse(problem.measurement)
        Guard(x).check(1, pseudo_inverse=x)
        residual = problem.operator.forward_once(x) - problem.measurement
        yield report(problem, 1, 1, x, {"x": x}, clock.seconds, residual)


class FBP(PseudoInverse):
    name, label, modalities = "fbp", "FBP", ("CT",)


class ZeroFilled(PseudoInverse):
    name, label, modalities = "zero-filled", "Zero-filled", ("MR",)


@dataclass(frozen=True)
class IterationSettings(Settings):
    iterations: int = setting(100, "Iterations of a classical method.", low=1, high=100_000)


class SIRT(Solver):
    """Simultaneous iterative reconstruction from a zero image."""

    name, label, modalities = "sirt", "SIRT", ("CT",)
    settings_class = IterationSettings
    needs_prior = False

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior | None,
        settings: IterationSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        y, step = problem.measurement, SirtStep(problem)
        shape = (len(y), *problem.operator.image_shape)
        x = y.new_zeros(shape) if resume is None else resume.state["x"]
        guard = Guard(x)
        for k in range(resume.k if resume else 0, settings.iterations):
            clock = Stopwatch(y.device)
            with clock("data"):
                x = step(x)
            guard.check(k + 1, SIRT_step=x)
            yield report(problem, k + 1, settings.iterations, x, {"x": x}, clock.seconds)


@dataclass(frozen=True)
class TikhonovSettings(IterationSettings):
    tikhonov: float = setting(
        1e-4, "Penalty on ||x||^2 relative to ||A||^2: larger is smoother and darker.", low=0
    )


class CGTikhonov(Solver):
    """min ||A x - y||^2_W + lambda ||x||^2 by conjugate gradients."""

    name, label = "cg", "CG-Tikhonov"
    settings_class = TikhonovSettings
    needs_prior = False

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior | None,
        settings: TikhonovSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        penalty = settings.tikhonov * problem.operator.norm() ** 2
        data = DataStep(problem, DataStepSettings())
        rhs = data.back_projection
        cg = ConjugateGradients(
            lambda x: data.normal(x) + penalty * x,
            rhs,
            start=torch.zeros_like(rhs),
            state=resume.state if resume else None,
        )
        guard = Guard(rhs)
        for k in range(resume.k if resume else 0, settings.iterations):
            clock = Stopwatch(rhs.device)
            with clock("data"):
                cg.step()
            guard.check(k + 1, CG_step=cg.x)
            yield report(problem, k + 1, settings.iterations, cg.x, cg.state, clock.seconds)


@dataclass(frozen=True)
class TVSettings(IterationSettings):
    tv_strength: float = setting(
        1e-4, "Penalty on total variation relative to ||A||^2: larger is flatter.", low=0
    )
    tv_inner: int = setting(20, "Inner iterations of each TV proximal step.", low=1, high=1000)


class TV(Solver):
    """min 1/2 ||A x - y||^2_W + lambda TV(x) by FISTA, with warm-started TV steps."""

    name, label = "tv", "TV"
    settings_class = TVSettings
    needs_prior = False

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior | None,
        settings: TVSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        data = DataStep(problem, DataStepSettings())
        largest = 1.0 if problem.weights is None else float(problem.weights.max())
        curvature = problem.operator.norm() ** 2
        step, penalty = 1 / (1.02 * largest * curvature), settings.tv_strength * curvature
        if resume is None:
            x = problem.operator.pseudo_inverse(problem.measurement)
            state = {"x": x, "ahead": x, "t": x.new_ones(())}
        else:
            state = dict(resume.state)
        x, ahead, dual = state["x"], state["ahead"], state.get("dual")
        t = float(state["t"])
        guard = Guard(x)
        for k in range(resume.k if resume else 0, settings.iterations):
            clock, x_last = Stopwatch(x.device), x
            with clock("data"):
                descent = ahead - step * (data.normal(ahead) - data.back_projection)
                x, dual = tv_prox(descent, step * penalty, settings.tv_inner, dual)
            t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
            ahead, t = x + ((t - 1) / t_next) * (x - x_last), t_next
            guard.check(k + 1, TV_step=x)
            state = {
                "x": x,
                "ahead": ahead,
                "dual": dual,
                "t": torch.tensor(t, dtype=torch.float64),
            }
            yield report(problem, k + 1, settings.iterations, x, state, clock.seconds)
