"""The data step: x <- argmin ||A x - y||^2_W + rho ||x - v||^2.

Neighbouring slices may be coupled in it: see engine.solvers.coupling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from engine.physics.cg import ConjugateGradients, LinearMap, conjugate_gradients, dot
from engine.physics.problem import Problem
from engine.solvers.constraint import constraint_of
from engine.solvers.coupling import Coupling, check_neighbours
from engine.solvers.discrepancy import pixel_noise
from engine.solvers.least_squares import damped_least_squares
from engine.solvers.preconditioner import RayFilter, circulant_eigenvalues, circulant_solve
from engine.spec.errors import RequestError
from engine.spec.settings import Settings, excludes, only_with, setting

# Without a rule from the user, rho = w / sigma^2 with w = sigma_y^2 (the Bayesian choice for
# measurement noise sigma_y) plus this share of ||A||^2. The share is what the paper's
# limited-angle setting (1e-5 with the published code's adjoint) amounts to. Without a noise level
# it is the scan's model error: pixels are no exact picture of what was measured.
AUTO_RHO_SHARE = 2.5e-8

# The discrepancy rule: while an image's reduced chi^2 is below NOISE_MET it fits the noise, and the
# measurement is trusted less, by at most STEP per iteration; more than its noise says only late,
# where the prior keeps the image from fitting. The power makes up for the few iterations that are
# left once an image comes so close.
NOISE_MET, POWER, STEP, LEAST_TRUST = 0.95, 3.0, 4.0, 1e6
LATE, MOST_TRUST = 0.03, 30.0  # below this noise level, and by how much at most
SEARCHES, FIRST_STEP, CLOSE_ENOUGH = 10, 30.0, 0.03  # for a coupling that meets the noise

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
        label="rho, constant",
        rule=excludes(
            "rho_over_sigma2", "rho", "The rule rho = W / sigma² is given: clear W to use this."
        ),
    )
    rho_over_sigma2: float | None = setting(
        None,
        "Coupling rho = W / sigma^2, growing as the noise level falls. "
        "Without either rule W is chosen from the measurement noise and ||A||.",
        low=0,
        label="rho × sigma² (W)",
        rule=excludes("rho", "rho_over_sigma2", "A constant rho is given: clear it to use this."),
    )
    discrepancy: bool = setting(
        True,
        "With the automatic rule and a known noise level: when the image fits the measurement "
        "more closely than its noise allows, trust the measurement less.",
        before=False,
        label="Discrepancy rule",
    )
    discrepancy_late: bool = setting(
        True,
        "Let the discrepancy rule change the trust only at the end, where the noise level is "
        "below what the noise of the measurement leaves in a pixel: before, the best image fits "
        "more closely than its noise.",
        before=False,
    )
    model_error: float | None = setting(
        None,
        "With the automatic rule and no noise level: how exactly the measurement is described, as "
        "a share of ||A||^2 in W. Without a number that of the scan.",
        low=0,
        high=1,
        before=AUTO_RHO_SHARE,
        label="Model error, of ‖A‖²",
    )
    cg_iterations: int | None = setting(
        None,
        "Conjugate-gradient steps per iteration: more fit the measurement more closely. Without "
        "a number 10 with the ramp preconditioner and 20 otherwise.",
        low=1,
        high=10_000,
        label="CG iterations",
    )
    cg_tolerance: float = setting(
        1e-7,
        "Conjugate gradients stop early when the gradient is this small beside A^T y (with the "
        "ramp preconditioner: what is unexplained, beside y).",
        low=0,
        high=1,
        label="CG tolerance",
    )
    cg_warm_start: bool = setting(
        True,
        "Begin conjugate gradients with what the last iteration changed: with the dual, which "
        "asks for nearly the same change again, the image fits the measurement far sooner.",
        label="CG warm start",
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
        rule=only_with("preconditioner", "filtered", "Only with the filtered preconditioner."),
    )

    couple_z: float = setting(
        0.0,
        "Weight that pulls neighbouring slices together, relative to the pull of the prior: "
        "larger flickers less along z and blurs more. Zero treats every slice on its own.",
        low=0,
        high=1000,
        label="Coupling along z",
    )
    positivity: bool = setting(
        False,
        "CT: nothing attenuates less than air, so that no value falls below -1000 HU.",
        label="Nothing below air",
    )
    field_of_view: bool = setting(
        False,
        "Hold what a measured scan does not see at air (CT) or at no signal (MR): the corners "
        "outside the circle of the detector, pixels where no coil receives.",
        label="Air outside the field of view",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rho is not None and self.rho_over_sigma2 is not None:
            raise RequestError("Give ⟦rho⟧ or ⟦rho_over_sigma2⟧, not both.")

    def follows_noise(self, problem: Problem) -> bool:
        """Whether the noise of the measurement is known and sets rho."""
        automatic = self.rho is None and self.rho_over_sigma2 is None
        return automatic and float(torch.as_tensor(problem.noise_sigma).max()) > 0


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
        self.own_preconditioner = settings.preconditioner == "auto" and problem.weights is None
        kind, geometry = settings.preconditioner, problem.operator.geometry
        if kind == "auto":
            kind = "none"
            if geometry is not None:
                kind = "filtered" if geometry.is_limited_angle() else "ramp"
        if kind == "filtered":
            self.eigenvalues = circulant_eigenvalues(
                self._unweighted_normal, self.back_projection[:1], settings.preconditioner_floor
            )
        elif kind == "ramp" and not settings.couple_z:
            self.rays = RayFilter(problem.operator, problem.weights)
        self.iterations = settings.cg_iterations or (RAMP_STEPS if self.rays else STEPS)
        own = settings.model_error
        share = problem.model_error if own is None else own
        noise = torch.as_tensor(problem.noise_sigma, dtype=torch.float64)
        # per slice, whatever is beside it
        self.share = torch.where(
            noise > 0, noise.new_tensor(AUTO_RHO_SHARE), noise.new_tensor(share)
        ).to(problem.measurement)
        self.meets_noise = settings.discrepancy and settings.follows_noise(problem)
        self.pixel_noise = pixel_noise(problem) if self.meets_noise else None
        # by how much less than the noise level says the measurement is trusted, per slice
        self.distrust = state.get("distrust") if state else None
        if self.distrust is None and self.meets_noise:
            self.distrust = self.back_projection.new_ones(len(self.back_projection), 1, 1, 1)
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
        noise = problem.noise_sigma**2
        if self.distrust is not None:
            noise = self.distrust * noise
        return noise + self.share * problem.operator.norm() ** 2

    def __call__(self, v: Tensor, sigma: float) -> Tensor:
        """x; where it is constrained, the allowed image nearest to it."""
        x = self._solve(v, self.rho(sigma))
        return x if self.constraint is None else self.constraint.apply(x)

    def nearest(self, v: Tensor, rho: Tensor | float) -> Tensor:
        """x for a coupling of its own, without the constraint."""
        return self._solve(v, rho)

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
            precondition=self._preconditioner(rho),
        )
        if settings.cg_warm_start:
            self.correction = correction
        return v + correction

    def _preconditioner(self, rho: Tensor | float) -> LinearMap | None:
        if self.eigenvalues is not None:
            return circulant_solve(self.eigenvalues, rho)
        return self.problem.operator.preconditioner(rho) if self.own_preconditioner else None

    def learn(self, denoised: Tensor, fitted: Tensor, sigma: float) -> None:
        """From the residuals of z and x after an iteration: how well do they fit the noise?

        That z overfits it says alone. That the measurement deserves more trust than its noise says
        both have to say, and late: before, z lags behind.
        """
        if not self.meets_noise or self.distrust is None:
            return
        of_z, of_x = (
            self.problem.reduced_chi2(residual).view(-1, 1, 1, 1) for residual in (denoised, fitted)
        )
        if self.settings.discrepancy_late and self.pixel_noise is not None:
            self._learn_late(of_z, of_x, sigma < self.pixel_noise)
            return
        change = (NOISE_MET / of_z.clamp_min(1e-6)).pow(POWER).clamp(1 / STEP, STEP)
        least = self.distrust.clamp(max=1)
        if sigma < LATE:
            least = torch.where(of_x > 1 / NOISE_MET, 1 / MOST_TRUST, least)
        changed = (self.distrust * change).maximum(least).clamp(max=LEAST_TRUST)
        self.distrust = torch.where(of_z > 0, changed, self.distrust)

    def _learn_late(self, of_z: Tensor, of_x: Tensor, late: Tensor) -> None:
        """x feels a change of rho at once and z later: once x is above the noise z will follow, and
        the trust must not fall any further."""
        assert self.distrust is not None
        below = (of_z < NOISE_MET) & (of_x < 1 / NOISE_MET)
        above = (of_z > 1 / NOISE_MET) & (of_x > 1 / NOISE_MET)
        change = NOISE_MET / torch.where(below, of_z, (of_z * of_x).sqrt()).clamp_min(1e-6)
        change = change.pow(POWER).clamp(1 / STEP, STEP)
        change = torch.where(below, change, change.clamp(max=1))
        least = torch.where(above, 1 / MOST_TRUST, self.distrust.clamp(max=1))
        changed = (self.distrust * change).maximum(least).clamp(max=LEAST_TRUST)
        self.distrust = torch.where(late & (of_z > 0), changed, self.distrust)

    def answer(self, z: Tensor, denoised: Tensor, sigma: float) -> Tensor:
        """z, or where its residual is still larger than the noise the nearest image at the noise.

        ``denoised`` is the residual of z.
        """
        if not (self.meets_noise and self.settings.discrepancy_late):
            return z
        above = self.problem.reduced_chi2(denoised).view(-1, 1, 1, 1) > 1 / NOISE_MET
        if not bool(above.any()):
            return z
        self.correction = None  # it belongs to z - u
        return torch.where(above, self.at_the_noise(z, sigma), z)

    def at_the_noise(self, v: Tensor, sigma: float) -> Tensor:
        """The data step with the coupling at which the residual is as large as the noise.

        For methods that answer with its outcome. The residual grows with rho: its logarithm is
        searched by steps until it is bracketed, then by halves.
        """
        x = self(v, sigma)
        if not self.meets_noise or self.distrust is None:
            return x
        trust = self.distrust
        low, high = torch.full_like(trust, 1 / LEAST_TRUST), torch.full_like(trust, LEAST_TRUST)
        for _ in range(SEARCHES):
            chi2 = self.problem.reduced_chi2(self.problem.residual(x)).view(-1, 1, 1, 1)
            met = ((chi2 - 1).abs() < CLOSE_ENOUGH) | (chi2 == 0)
            if bool(met.all()):
                break
            low, high = torch.where(chi2 < 1, trust, low), torch.where(chi2 > 1, trust, high)
            step = torch.where(chi2 < 1, trust * FIRST_STEP, trust / FIRST_STEP)
            inside = (low > 1 / LEAST_TRUST) & (high < LEAST_TRUST)
            guess = torch.where(
                inside, (low * high).sqrt(), step.clamp(1 / LEAST_TRUST, LEAST_TRUST)
            )
            trust = torch.where(met, trust, guess)
            self.distrust = trust
            x = torch.where(met, x, self(v, sigma))
        return x

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
        state = {self.memory: self.correction, "distrust": self.distrust}
        return {name: value for name, value in state.items() if value is not None}

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
        return self.problem.operator.normal(x, self.problem.weights)
