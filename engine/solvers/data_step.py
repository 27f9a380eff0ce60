"""The data step: x <- argmin ||A x - y||^2_W + rho ||x - v||^2.

Neighbouring slices may be coupled in it: see engine.solvers.coupling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from engine.errors import RequestError
from engine.problem import Problem
from engine.settings import Settings, setting
from engine.solvers.cg import ConjugateGradients, LinearMap, conjugate_gradients, dot
from engine.solvers.constraint import constraint_of
from engine.solvers.coupling import Coupling, check_neighbours
from engine.solvers.least_squares import damped_least_squares
from engine.solvers.preconditioner import RayFilter, circulant_eigenvalues, circulant_solve

# Without a rule from the user, rho = w / sigma^2 with w = sigma_y^2 (the Bayesian choice for
# measurement noise sigma_y) plus this share of ||A||^2. The share is what the paper's
# limited-angle setting (1e-5 with the published code's adjoint) amounts to.
AUTO_RHO_SHARE = 2.5e-8

# Conjugate-gradient steps without a number from the user. From 20 views ten with the ramp filter
# come as far as twenty without it.
STEPS, RAMP_STEPS = 20, 10


@dataclass(frozen=True)
class DataStepSettings(Settings):
    """How strictly and how exactly the image is made to fit the measurement."""

    rho: float | None = setting(
        None,
        "Constant coupling rho: larger trusts the prior more, smaller the measurement. "
        "Zero projects onto the measurement.",
        low=0,
    )
    rho_over_sigma2: float | None = setting(
        None,
        "Coupling rho = W / sigma^2, growing as the noise level falls. "
        "Without either rule W is chosen from the measurement noise and ||A||.",
        low=0,
    )
    cg_iterations: int | None = setting(
        None,
        "Conjugate-gradient steps per iteration: more fit the measurement more closely. Without "
        "a number 10 with the ramp preconditioner and 20 otherwise.",
        low=1,
        high=10_000,
    )
    cg_tolerance: float = setting(
        1e-7,
        "Conjugate gradients stop early when the gradient is this small beside A^T y (with the "
        "ramp preconditioner: what is unexplained, beside y).",
        low=0,
        high=1,
    )
    cg_warm_start: bool = setting(
        True,
        "Begin conjugate gradients with what the last iteration changed: with the dual, which "
        "asks for nearly the same change again, the image fits the measurement far sooner.",
    )
    preconditioner: str = setting(
        "auto",
        "'ramp' filters the views as FBP does and suits few of them; 'filtered' divides by the "
        "operator's own spectrum and suits limited angles. Both converge in fewer steps to the "
        "same image. 'auto' is the one that suits the scan; slices coupled along z have no ramp.",
        choices=("auto", "none", "ramp", "filtered"),
    )
    preconditioner_floor: float = setting(
        0.02,
        "Smallest eigenvalue the preconditioner divides by, relative to the largest.",
        above=0,
        high=1,
    )

    couple_z: float = setting(
        0.0,
        "Weight that pulls neighbouring slices together, relative to the pull of the prior: "
        "larger flickers less along z and blurs more. Zero treats every slice on its own.",
        low=0,
        high=1000,
    )
    positivity: bool = setting(
        False, "CT: nothing attenuates less than air, so that no value falls below -1000 HU."
    )
    field_of_view: bool = setting(
        False,
        "Hold what a measured scan does not see at air (CT) or at no signal (MR): the corners "
        "outside the circle of the detector, pixels where no coil receives.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rho is not None and self.rho_over_sigma2 is not None:
            raise RequestError("Give --rho or --rho-over-sigma2, not both.")


class DataStep:
    """The data step of one problem, with what can be computed once kept.

    ``state`` is that of a solver which goes on where another ended.
    """

    def __init__(
        self,
        problem: Problem,
        settings: DataStepSettings,
        state: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.problem, self.settings = problem, settings
        if settings.couple_z:
            check_neighbours(problem.slices)
        self.back_projection = problem.operator.adjoint(self._weigh(problem.measurement))
        self.eigenvalues: Tensor | None = None
        self.rays: RayFilter | None = None
        kind, geometry = settings.preconditioner, problem.operator.geometry
        if kind == "auto":
            kind = "none"
            if geometry is not None:
                kind = "filtered" if geometry.leaves_a_wedge() else "ramp"
        if kind == "filtered":
            self.eigenvalues = circulant_eigenvalues(
                self._unweighted_normal, self.back_projection[:1], settings.preconditioner_floor
            )
        elif kind == "ramp" and not settings.couple_z:
            self.rays = RayFilter(problem.operator, problem.weights)
        self.iterations = settings.cg_iterations or (RAMP_STEPS if self.rays else STEPS)
        self.constraint = constraint_of(problem, settings.positivity, settings.field_of_view)
        # what the last call changed: an image, or a measurement w where the image is A^T w
        self.memory = "correction_by_rays" if self.rays else "correction"
        self.correction = state.get(self.memory) if state else None

    def rho(self, sigma: float) -> Tensor | float:
        if self.settings.rho is not None:
            return self.settings.rho
        return self.rho_weight() / sigma**2

    def rho_weight(self) -> Tensor | float:
        """w in rho = w / sigma^2."""
        if self.settings.rho_over_sigma2 is not None:
            return self.settings.rho_over_sigma2
        problem = self.problem
        return problem.noise_sigma**2 + AUTO_RHO_SHARE * problem.operator.norm() ** 2

    def __call__(self, v: Tensor, sigma: float) -> Tensor:
        """x; where it is constrained, the allowed image nearest to it."""
        x = self._solve(v, self.rho(sigma))
        return x if self.constraint is None else self.constraint.apply(x)

    def _solve(self, v: Tensor, rho: Tensor | float) -> Tensor:
        problem, settings = self.problem, self.settings
        if settings.couple_z and len(v) > 1:
            return self._coupled(v, rho)
        closed = problem.operator.proximal(problem.measurement, v, rho, problem.weights)
        if closed is not None:
            return closed
        if self.rays is not None:
            return v + self._by_rays(v, rho, self.rays.solve(rho))
        rhs = self.back_projection + rho * v
        correction, missing = self._begin(v, rho)
        correction = damped_least_squares(
            problem.operator.forward,
            problem.operator.adjoint,
            self._weigh,
            missing,
            correction,
            rho,
            self.iterations,
            limit=settings.cg_tolerance * dot(rhs, rhs).sqrt(),
            precondition=circulant_solve(self.eigenvalues, rho)
            if self.eigenvalues is not None
            else None,
        )
        if settings.cg_warm_start:
            self.correction = correction
        return v + correction

    def _begin(self, v: Tensor, rho: Tensor | float) -> tuple[Tensor, Tensor]:
        """A first x - v, and y - A x for it: the last one again, as far along it as is best."""
        missing, last = -self.problem.residual(v), self.correction
        if last is None:
            return torch.zeros_like(v), missing
        seen = self.problem.operator.forward(last)
        curvature = dot(seen, self._weigh(seen)) + rho * dot(last, last)
        fitting = dot(seen, self._weigh(missing))
        length = torch.where(curvature > 0, fitting / curvature, torch.zeros_like(fitting))
        return length * last, missing - length * seen

    def _by_rays(self, v: Tensor, rho: Tensor | float, precondition: LinearMap) -> Tensor:
        """x - v from the measurement's side: A^T w with (A A^T + rho) w = y - A v.

        With weights A stands for W^1/2 A.
        """
        operator, weights, last = self.problem.operator, self.problem.weights, self.correction
        root = 1.0 if weights is None else weights.sqrt()

        def system(w: Tensor) -> Tensor:
            return root * operator.forward(operator.adjoint(root * w)) + rho * w

        missing = -root * self.problem.residual(v)
        w, r = torch.zeros_like(missing), missing
        if last is not None:  # again, as far along it as is best
            seen = system(last)
            curvature = dot(last, seen)
            length = torch.where(curvature > 0, dot(last, missing) / curvature, curvature)
            w, r = length * last, missing - length * seen
        p = precondition(r)
        tolerance, y = self.settings.cg_tolerance, root * self.problem.measurement
        cg = ConjugateGradients(
            system, y, w, tolerance, precondition, {"x": w, "r": r, "p": p, "rs": dot(r, p)}
        )
        w = cg.run(self.iterations)
        if self.settings.cg_warm_start:
            self.correction = w.contiguous()  # of several slices it is not, and files want it so
        return operator.adjoint(root * w)

    @property
    def state(self) -> dict[str, Tensor]:
        """What the next call begins with; part of a solver's state."""
        return {} if self.correction is None else {self.memory: self.correction}

    def _coupled(self, v: Tensor, rho: Tensor | float) -> Tensor:
        """The slices together; they share one rho, as slices of a slab are about equally noisy."""
        settings, near = self.settings, Coupling(self.settings.couple_z, v)
        shared = rho.mean() if isinstance(rho, Tensor) else rho
        precondition = near.solve
        if self.eigenvalues is not None:
            by_wave = circulant_solve(self.eigenvalues, shared * near.scales.view(-1, 1, 1, 1))
            precondition = partial(near.by_mode, solve=by_wave)
        joined = conjugate_gradients(
            near.joined(lambda x: self.normal(x) + shared * near.apply(x)),
            near.join(self.back_projection + shared * v),
            start=near.join(near.solve(v)),
            iterations=self.iterations,
            tolerance=settings.cg_tolerance,
            precondition=near.joined(precondition),
        )
        return joined.view(v.shape)

    def _weigh(self, y: Tensor) -> Tensor:
        return y if self.problem.weights is None else self.problem.weights * y

    def _unweighted_normal(self, x: Tensor) -> Tensor:
        return self.problem.operator.adjoint(self.problem.operator.forward(x))

    def normal(self, x: Tensor) -> Tensor:
        """A^T W A x."""
        return self.problem.operator.adjoint(self._weigh(self.problem.operator.forward(x)))
