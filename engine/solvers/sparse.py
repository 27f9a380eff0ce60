"""Images with few edges or few wavelet coefficients, as many as the noise asks for.

    min ||K x||_1   so that   ||W^1/2 (A x - y)|| <= sigma sqrt(m)      with known noise
    min 1/2 ||A x - y||^2_W + strength ||A||^2 ||K x||_1                with a given strength

K is the gradient (total variation) or a wavelet transform. Both problems are solved by the
alternating direction method of multipliers with two splits, s = K x and f = A x, so that the
statistical weights stay out of the linear system (Ramani and Fessler 2012):

    x <- argmin ||A x - f + p||^2 + gamma ||K x - s + q||^2     a few preconditioned CG steps
    s <- shrink(K x + q, t)                                     shorten every coefficient by t
    f <- the point nearest to A x + p that fits the data        or a weighted mean, see above
    q <- q + K x - s,   p <- p + A x - f

Constraints are a third split, c = x: c is the allowed image nearest to x + r.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.physics.cg import ConjugateGradients, dot
from engine.physics.problem import Problem
from engine.priors.analytic import divergence, gradient
from engine.solvers.classical import Classical, IterationSettings, report
from engine.solvers.constraint import Constraint, constraint_of
from engine.solvers.diagnostics import Guard, Stopwatch
from engine.solvers.discrepancy import multiplier, noise_norm, weighted_norm
from engine.solvers.iteration import Iteration
from engine.solvers.preconditioner import circulant_eigenvalues
from engine.solvers.solver import Resume
from engine.solvers.tv_fista import fista
from engine.spec.errors import RequestError
from engine.spec.settings import never_with, only_with, setting

DEFAULT_STRENGTH = 1e-4  # where the noise is not known
CG_STEPS = 2
RELAXATION = 1.6  # of the splits, between 1 (none) and 2
FLOOR = 0.02  # smallest eigenvalue the preconditioner divides by, relative to the largest
FIRST_THRESHOLD = 0.2  # of the mean size of K x in the starting image
LOOK = 10  # iterations between two looks whether the image still moves
BALANCE, BALANCE_UNTIL = 5, 100  # iterations between, and until, changes of the penalties
MOST_UNBALANCED = 10.0  # times or parts of its first value that gamma may become
FIT = 0.01  # how near the reduced chi^2 must come to 1


class Sparsifier(Protocol):
    """K, whose coefficients ``[D, B, C, H, W]`` are few; ``groups`` are sized together."""

    groups: tuple[int, ...]
    spectrum: Tensor  # of K^T K for rfft2, exactly or nearly

    def apply(self, x: Tensor) -> Tensor: ...
    def transpose(self, coefficients: Tensor) -> Tensor: ...
    def normal(self, x: Tensor) -> Tensor: ...


class Gradient:
    """Total variation, isotropic, channels joined."""

    groups: tuple[int, ...] = (0, 2)

    def __init__(self, like: Tensor) -> None:
        height, width = like.shape[-2:]
        fy, fx = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)
        both = 4 - 2 * torch.cos(2 * torch.pi * fy) - 2 * torch.cos(2 * torch.pi * fx)
        self.spectrum = both.to(like)  # if the image went on periodically

    def apply(self, x: Tensor) -> Tensor:
        return gradient(x)

    def transpose(self, coefficients: Tensor) -> Tensor:
        return -divergence(coefficients)

    def normal(self, x: Tensor) -> Tensor:
        return -divergence(gradient(x))


def sizes(coefficients: Tensor, groups: tuple[int, ...]) -> Tensor:
    return coefficients.square().sum(groups, keepdim=True).sqrt()


def shrink(coefficients: Tensor, threshold: Tensor | float, groups: tuple[int, ...]) -> Tensor:
    """The proximal map of threshold * ||.||_1: all sizes smaller by as much, none below 0."""
    size = sizes(coefficients, groups)
    return coefficients * (1 - threshold / size.clamp_min(1e-30)).clamp_min(0)


def length(coefficients: Tensor) -> Tensor:
    """Euclidean norm of every slice, ``[B, 1, 1, 1]``."""
    return coefficients.square().sum((0, 2, 3, 4)).sqrt().view(-1, 1, 1, 1)


@dataclass(frozen=True)
class SparseSettings(IterationSettings):
    tolerance: float = setting(
        5e-3,
        "Converged means that the image will change by less than this share of itself, as far "
        "as its last steps tell. Zero always takes all iterations.",
        low=0,
        high=1,
        label="Converged within",
        rule=never_with("tv_method", "fista", "FISTA does not know when it has converged."),
    )


class SparseFit:
    """The iteration for one problem. ``state`` is a solver's; every slice is on its own.

    ``limit`` is the residual of the noise, by slice; where it is zero ``penalty`` weighs ||K x||_1.
    """

    def __init__(
        self,
        problem: Problem,
        sparsifier: Sparsifier,
        x: Tensor,
        limit: Tensor,
        penalty: float,
        constraint: Constraint | None = None,
    ) -> None:
        self.problem, self.sparsifier, self.constraint = problem, sparsifier, constraint
        self.limit, self.penalty = limit, max(penalty, 1e-30)
        self.by_noise = bool((limit > 0).any())
        self.weights: Tensor | float = 1.0 if problem.weights is None else problem.weights
        operator = problem.operator
        probe = torch.randn((1, *x.shape[1:]), generator=torch.Generator().manual_seed(0)).to(x)
        seen = operator.forward(probe.expand_as(x).contiguous())
        self.typical = dot(seen, seen) / dot(probe, probe)  # mean eigenvalue of A^T A
        self.eigenvalues = self.typical
        if operator.geometry is not None:
            self.eigenvalues = circulant_eigenvalues(self._normal, x[:1], FLOOR)

    def start(self, x: Tensor) -> dict[str, Tensor]:
        coefficients = self.sparsifier.apply(x)
        mean = sizes(coefficients, self.sparsifier.groups).mean((0, 2, 3, 4)).view(-1, 1, 1, 1)
        held = {}
        if self.constraint is not None:
            held = {"c": self.constraint.apply(x), "r": torch.zeros_like(x)}
        return {
            **held,
            "x": x,
            "s": coefficients,
            "f": self.problem.measurement.contiguous(),
            "q": torch.zeros_like(coefficients),
            "p": torch.zeros_like(self.problem.measurement),
            "t": torch.where(mean > 0, FIRST_THRESHOLD * mean, torch.ones_like(mean)),
            "gamma": self.typical.clone(),
            "marked": x,
            "step": torch.full_like(mean, torch.inf),
            "left": torch.full_like(mean, torch.inf),  # how far the image will yet move, about
            "done": torch.zeros_like(mean, dtype=torch.bool),
        }

    def __call__(self, state: dict[str, Tensor], k: int, tolerance: float) -> dict[str, Tensor]:
        """Iteration number ``k``, from 1; slices that are done stay as they are."""
        operator, sparsifier = self.problem.operator, self.sparsifier
        new = dict(state)
        gamma, s, f = state["gamma"], state["s"], state["f"]
        new["x"] = x = self._fit(state)
        mixed = RELAXATION * sparsifier.apply(x) + (1 - RELAXATION) * s + state["q"]
        new["s"] = shrink(mixed, state["t"], sparsifier.groups)
        new["q"] = mixed - new["s"]
        seen = operator.forward(x)
        wished = RELAXATION * seen + (1 - RELAXATION) * f + state["p"]
        new["f"] = self._fitting(wished, gamma * state["t"]).contiguous()
        new["p"] = (wished - new["f"]).contiguous()
        if self.constraint is not None:
            wished = RELAXATION * x + (1 - RELAXATION) * state["c"] + state["r"]
            new["c"] = self.constraint.apply(wished)
            new["r"] = wished - new["c"]
        if k % LOOK == 0:
            self._look(new, seen, tolerance)
        if k % BALANCE == 0 and k < BALANCE_UNTIL:
            self._balance(new, s, f, seen)
        done = state["done"]
        return {
            n: value if n == "done" else _kept(done, state[n], value) for n, value in new.items()
        }

    def image(self, state: dict[str, Tensor]) -> Tensor:
        """The allowed image nearest to x."""
        return state["x"] if self.constraint is None else self.constraint.apply(state["x"])

    def reduced(self, x: Tensor) -> Tensor:
        """chi^2 over the number of measurements, where the noise is known."""
        size = weighted_norm(self.problem.residual(x), self.problem.weights)
        return torch.where(self.limit > 0, size / self.limit, torch.ones_like(size)) ** 2

    def _normal(self, x: Tensor) -> Tensor:
        return self.problem.operator.adjoint(self.problem.operator.forward(x))

    def _fit(self, state: dict[str, Tensor]) -> Tensor:
        x, gamma, sparsifier = state["x"], state["gamma"], self.sparsifier
        missing = state["f"] - state["p"] - self.problem.operator.forward(x)
        sparse = sparsifier.transpose(state["s"] - state["q"]) - sparsifier.normal(x)
        r = self.problem.operator.adjoint(missing) + gamma * sparse
        eigenvalues, hold = self.eigenvalues + gamma * sparsifier.spectrum, self.typical
        if self.constraint is not None:
            r = r + hold * (state["c"] - state["r"] - x)
            eigenvalues = eigenvalues + hold
        inverse = 1 / eigenvalues

        def system(v: Tensor) -> Tensor:
            image = self._normal(v) + gamma * sparsifier.normal(v)
            return image if self.constraint is None else image + hold * v

        def precondition(r: Tensor) -> Tensor:
            return torch.fft.irfft2(torch.fft.rfft2(r) * inverse, s=r.shape[-2:])

        direction = precondition(r)
        cg = ConjugateGradients(
            system,
            r,
            x,
            precondition=precondition,
            state={"x": x, "r": r, "p": direction, "rs": dot(r, direction)},
        )
        return cg.run(CG_STEPS)

    def _fitting(self, wished: Tensor, scale: Tensor) -> Tensor:
        """y + r / (1 + l W): l from the noise, or from the penalty; ``scale`` is t gamma."""
        y = self.problem.measurement
        given = scale / self.penalty
        found = multiplier(wished - y, self.weights, self.limit)
        strictness = torch.where(self.limit > 0, found, given)
        return y + (wished - y) / (1 + strictness * self.weights)

    def _look(self, state: dict[str, Tensor], seen: Tensor, tolerance: float) -> None:
        """The steps shrink about geometrically: what is left of them is the sum of the rest."""
        x = state["x"]
        step = weighted_norm(x - state["marked"], None) / weighted_norm(x, None).clamp_min(1e-30)
        ratio, before = step / state["step"], state["left"]
        known = (ratio < 1) & torch.isfinite(state["step"])  # the first has none to compare with
        left = torch.where(known, step * ratio / (1 - ratio), torch.inf)
        state["left"] = left = torch.where(step > 0, left, 0 * step)
        state["marked"], state["step"] = x, step
        size = weighted_norm(seen - self.problem.measurement, self.problem.weights)
        misfit = (size / self.limit) ** 2
        fits = (self.limit == 0) | (misfit < 1 + FIT)
        # an image that is constant can fit better than the noise
        plain = length(state["s"]) == 0
        fits = fits & ((self.limit == 0) | (misfit > 1 - FIT) | plain)
        outside = weighted_norm(x - self.image(state), None)
        fits = fits & (outside <= tolerance * weighted_norm(x, None))
        # twice: one small step may be chance
        state["done"] = state["done"] | ((left.maximum(before) < tolerance) & fits)

    def _balance(self, state: dict[str, Tensor], s: Tensor, f: Tensor, seen: Tensor) -> None:
        """Penalties for which both splits close as fast as they settle.

        That of the coefficients is measured relative to them and to their dual: its threshold may
        begin far from where it should be.
        """
        coefficients = self.sparsifier.apply(state["x"])
        gap = length(coefficients - state["s"]) / length(coefficients).clamp_min(1e-30)
        factor = _step(gap, length(state["s"] - s) / length(state["q"]).clamp_min(1e-30))
        state["t"], state["q"] = state["t"] / factor, state["q"] / factor
        gap = weighted_norm(seen - state["f"], None)
        inverse = _step(gap, weighted_norm(state["f"] - f, None))
        wanted = state["gamma"] * factor / inverse
        bounded = wanted.clamp(self.typical / MOST_UNBALANCED, self.typical * MOST_UNBALANCED)
        state["p"] = state["p"] * bounded / (state["gamma"] * factor)
        state["gamma"] = bounded


def _step(gap: Tensor, moved: Tensor) -> Tensor:
    factor = (gap / moved.clamp_min(1e-30)).sqrt().clamp(0.5, 2)
    return torch.where((factor > 1.2) | (factor < 1 / 1.2), factor, torch.ones_like(factor))


def _kept(done: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return torch.where(done, old, new)


def sparsest(
    problem: Problem,
    sparsifier: Sparsifier,
    settings: SparseSettings,
    strength: float | None,
    resume: Resume | None,
) -> Iterator[Iteration]:
    limit = noise_norm(problem).expand(len(problem.measurement), 1, 1, 1)
    if strength is not None:
        limit = torch.zeros_like(limit)
    penalty = (DEFAULT_STRENGTH if strength is None else strength) * problem.operator.norm() ** 2
    x = resume.state["x"] if resume else problem.operator.pseudo_inverse(problem.measurement)
    constraint = constraint_of(problem, settings.positivity, settings.field_of_view)
    fit, guard = SparseFit(problem, sparsifier, x, limit, penalty, constraint), Guard(x)
    state = dict(resume.state) if resume else fit.start(x)
    ended = resume is not None and bool(state["done"].all())
    for k in range(resume.k if resume else 0, settings.iterations):
        if ended:
            return
        clock = Stopwatch(x.device)
        with clock("data"):
            state = fit(state, k + 1, settings.tolerance)
        guard.check(k + 1, sparse_step=state["x"])
        ended = bool(state["done"].all())
        total = k + 1 if ended else settings.iterations
        iteration = report(problem, k + 1, total, fit.image(state), state, clock.seconds)
        iteration.note = _note(fit, state, k + 1, ended)
        yield iteration


def _note(fit: SparseFit, state: dict[str, Tensor], k: int, ended: bool) -> str:
    if ended:
        how = ", where the residual is that of the noise" if fit.by_noise else ""
        return f"Converged after {k} iterations{how}."
    words = [f"Not converged after {k} iterations"]
    worst = fit.reduced(fit.image(state)) if fit.by_noise else torch.ones_like(state["left"])
    left, misfit = torch.stack([state["left"].max(), worst.max()]).tolist()
    if left < 1:
        words.append(f"the image may still change by {max(left, 1e-3):.1%}")
    if misfit > 1 + FIT:
        words.append(f"the squared residual is {misfit:.2f} times that of the noise")
    return f"{': '.join([words[0], ' and '.join(words[1:])]) if words[1:] else words[0]}."


@dataclass(frozen=True)
class TVSettings(SparseSettings):
    tv_strength: float | None = setting(
        None,
        "Penalty on total variation relative to ||A||^2: larger is flatter. By default the "
        "flattest image that fits the measurement as well as its noise allows; 1e-4 where the "
        "noise is not known.",
        low=0,
        label="TV penalty",
    )
    tv_method: str = setting(
        "admm",
        "'admm' converges, and follows the noise; 'fista' is the method of older versions.",
        choices=("admm", "fista"),
        before="fista",
        label="TV algorithm",
    )
    tv_inner: int = setting(
        20,
        "FISTA: inner iterations of each TV proximal step.",
        low=1,
        high=1000,
        label="TV inner iterations",
        rule=only_with("tv_method", "fista", "Only with the algorithm fista."),
    )


class TV(Classical[TVSettings]):
    """The image of least total variation that fits the data."""

    name, label = "tv", "TV"
    help = "The flattest image that fits the measurement as well as its noise allows."
    place, colour, dash = 84, "#CC79A7", (4, 2)
    settings_class = TVSettings

    def fit(
        self, problem: Problem, settings: TVSettings, resume: Resume | None
    ) -> Iterator[Iteration]:
        strength = settings.tv_strength
        if settings.tv_method == "fista":
            if settings.positivity or settings.field_of_view:
                raise RequestError(
                    "⟦tv_method⟧ fista takes neither ⟦positivity⟧ nor ⟦field_of_view⟧: admm does."
                )
            strength = DEFAULT_STRENGTH if strength is None else strength
            return fista(problem, strength, settings.tv_inner, settings.iterations, resume)
        like = problem.measurement.new_zeros(problem.operator.image_shape)
        return sparsest(problem, Gradient(like), settings, strength, resume)
