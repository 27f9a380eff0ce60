"""Reconstruction without a prior, one file because each is a few lines.

FBP and zero-filled are the operator's own pseudo-inverse under the name of their modality.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from engine.physics.cg import ConjugateGradients, dot
from engine.physics.problem import Problem
from engine.physics.random import Generators
from engine.priors.prior import Prior
from engine.solvers.constraint import Constraint, ConstraintSettings, constraint_of
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.diagnostics import Guard, Stopwatch, norms
from engine.solvers.discrepancy import noise_norm, weighted_norm
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume, Solver
from engine.spec.settings import Settings, setting


class SirtStep:
    """x -> x + C A^T R (y - A x) with R = W / (A 1) and C = 1 / (A^T W 1).

    It needs rays with positive lengths, as CT has them.
    """

    def __init__(self, problem: Problem) -> None:
        operator, y = problem.operator, problem.measurement
        weights = torch.ones_like(y) if problem.weights is None else problem.weights
        row_sums = operator.forward(y.new_ones((len(y), *operator.image_shape)))
        column_sums = operator.adjoint(weights)
        self.problem = problem
        # A ray or pixel that meets nothing must not be divided by.
        self.row_scale = torch.where(row_sums > 0, weights / row_sums, torch.zeros_like(y))
        self.column_scale = torch.where(
            column_sums > 0, 1 / column_sums, torch.zeros_like(column_sums)
        )

    def __call__(self, x: Tensor) -> Tensor:
        residual = self.row_scale * self.problem.residual(x)
        return x - self.column_scale * self.problem.operator.adjoint(residual)


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


Own = TypeVar("Own", bound=Settings)


class Classical(Solver, Generic[Own]):
    """A method that needs neither a prior nor chance."""

    needs_prior = False

    @abstractmethod
    def fit(self, problem: Problem, settings: Own, resume: Resume | None) -> Iterator[Iteration]:
        """Its iterations."""

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior | None,
        settings: Own,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        return self.fit(problem, settings, resume)


class PseudoInverse(Classical[Settings]):
    settings_class = Settings

    def fit(
        self, problem: Problem, settings: Settings, resume: Resume | None
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
    help = "Filtered back-projection."
    place, colour, dash = 80, "#56B4E9", (8, 3, 2, 3)


class ZeroFilled(PseudoInverse):
    name, label, modalities = "zero-filled", "Zero-filled", ("MR",)
    help = "What was not measured is taken for zero."
    place, colour, dash = 81, "#56B4E9", (8, 3, 2, 3)  # as FBP: they never meet


@dataclass(frozen=True)
class IterationSettings(ConstraintSettings):
    shown_first = ("iterations", "tikhonov", "tv_strength", "wavelet_strength")

    iterations: int = setting(
        200, "Iterations of a classical method, at most.", low=1, high=100_000
    )


@dataclass(frozen=True)
class StoppingSettings(IterationSettings):
    stop_at_noise: bool = setting(
        True,
        "End when the residual is as small as the measurement noise, if that is known: going on "
        "would fit the noise. With SITCOM this ends the steps of a noise level.",
        before=False,
        label="Stop at the noise",
    )


def constraint_in(problem: Problem, settings: ConstraintSettings) -> Constraint:
    """The one that was asked for, or one that allows every image."""
    asked = constraint_of(problem, settings.positivity, settings.field_of_view)
    return Constraint() if asked is None else asked


class SIRT(Classical[StoppingSettings]):
    """Simultaneous iterative reconstruction from a zero image.

    With a constraint every step ends at the nearest allowed image.
    """

    name, label, modalities = "sirt", "SIRT", ("CT",)
    help = "Simultaneous iterative reconstruction."
    place, colour, dash = 82, "#999999", (2, 3)
    settings_class = StoppingSettings

    def fit(
        self, problem: Problem, settings: StoppingSettings, resume: Resume | None
    ) -> Iterator[Iteration]:
        y, step, allowed = problem.measurement, SirtStep(problem), constraint_in(problem, settings)
        shape = (len(y), *problem.operator.image_shape)
        x = allowed.apply(y.new_zeros(shape)) if resume is None else resume.state["x"]
        stop, guard = NoiseStop(problem, settings, x, resume), Guard(x)
        for k in range(resume.k if resume else 0, settings.iterations):
            if stop.ended:
                return
            clock = Stopwatch(y.device)
            with clock("data"):
                x = stop(x, allowed.apply(step(x)))
            guard.check(k + 1, SIRT_step=x)
            yield stop.report(k + 1, settings.iterations, x, {"x": x}, clock.seconds)


@dataclass(frozen=True)
class TikhonovSettings(StoppingSettings):
    tikhonov: float = setting(
        1e-4,
        "Penalty on ||x||^2 relative to ||A||^2: larger is smoother and darker.",
        low=0,
        label="Tikhonov penalty",
    )


class CGTikhonov(Classical[TikhonovSettings]):
    """min ||A x - y||^2_W + lambda ||x||^2 by conjugate gradients.

    With a constraint the allowed image nearest to it, as the data step of the diffusion methods
    has it: the directions of conjugate gradients do not bear projecting between steps.
    """

    name, label = "cg", "CG-Tikhonov"
    help = "Least squares with a penalty on the image's size, by conjugate gradients."
    place, colour, dash = 83, "#999999", (6, 3)
    settings_class = TikhonovSettings

    def fit(
        self, problem: Problem, settings: TikhonovSettings, resume: Resume | None
    ) -> Iterator[Iteration]:
        penalty = settings.tikhonov * problem.operator.norm() ** 2
        data, allowed = DataStep(problem, DataStepSettings()), constraint_in(problem, settings)
        rhs = data.back_projection
        cg = ConjugateGradients(
            lambda x: data.normal(x) + penalty * x,
            rhs,
            start=torch.zeros_like(rhs),
            state=resume.state if resume else None,
        )
        x = allowed.apply(cg.x) if resume is None else resume.state.get("image", cg.x)
        stop, guard = NoiseStop(problem, settings, x, resume), Guard(rhs)
        for k in range(resume.k if resume else 0, settings.iterations):
            if stop.ended:
                return
            clock = Stopwatch(rhs.device)
            with clock("data"):
                cg.step()
                x = stop(x, allowed.apply(cg.x))
            guard.check(k + 1, CG_step=x)
            state = {**cg.state, "image": x}
            yield stop.report(k + 1, settings.iterations, x, state, clock.seconds)


class NoiseStop:
    """Holds every slice whose residual has come down to that of the noise.

    The last step is cut short where the two are equal: the first steps of conjugate gradients
    are long.
    """

    def __init__(
        self, problem: Problem, settings: StoppingSettings, x: Tensor, resume: Resume | None
    ) -> None:
        self.problem = problem
        limit = noise_norm(problem) if settings.stop_at_noise else x.new_zeros(())
        self.limit = limit.expand(len(x), 1, 1, 1)
        self.done = torch.zeros_like(self.limit, dtype=torch.bool)
        if resume is not None:
            self.done = resume.state.get("done", self.done)
        self.residual = problem.residual(x)
        self.by_noise = bool((self.limit > 0).any())
        self.ended = bool(self.done.all())

    def __call__(self, before: Tensor, after: Tensor) -> Tensor:
        """The image to go on with, from those before and after a step."""
        if not self.by_noise:
            return after
        weights, there = self.problem.weights, self.problem.residual(after)
        turn = there - self.residual
        weighted = turn if weights is None else weights * turn
        a, b = dot(weighted, turn), dot(weighted, self.residual)
        c = weighted_norm(self.residual, weights) ** 2 - self.limit**2
        reached = (weighted_norm(there, weights) <= self.limit) & ~self.done
        share = (-b - (b * b - a * c).clamp_min(0).sqrt()) / a.clamp_min(1e-30)
        share = torch.where(reached, share.clamp(0, 1), torch.where(self.done, 0.0, 1.0))
        self.done = self.done | reached
        self.ended = bool(self.done.all())
        self.residual = torch.where(share == 1, there, self.residual + share * turn)
        return torch.where(share == 1, after, before + share * (after - before))

    def report(
        self, k: int, total: int, x: Tensor, state: dict[str, Tensor], seconds: dict[str, float]
    ) -> Iteration:
        if self.ended:
            total = k
        iteration = report(self.problem, k, total, x, {**state, "done": self.done}, seconds)
        if self.by_noise:
            iteration.note = (
                f"Stopped after {k} iterations, where the residual is that of the noise."
                if self.ended
                else f"After {k} iterations the residual is still above that of the noise."
            )
        return iteration
