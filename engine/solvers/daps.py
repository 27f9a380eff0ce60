"""DAPS (Zhang et al. 2025) in sigma form: at every noise level a clean sample that fits the data.

The noisy image is carried to noise zero, Langevin steps draw an image near that one which fits
the measurement, and noise of the next level is added to it afresh.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators, normal_like
from engine.priors.prior import Prior
from engine.solvers.diagnostics import Guard, Stopwatch, sampling_iteration
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume, ScheduleSettings, Solver, karras_sigmas
from engine.spec.errors import RequestError
from engine.spec.settings import only_if_given, setting

# Without --tau, tau^2 = sigma_y^2 + this share of ||A||^2. The DC-PnPDP paper's values for
# sparse views, limited angle and MRI, each with the ||A|| of its scan, amount to 2.9e-6, 2.7e-6
# and 1e-6; a tenth of that fits more closely and was 0.3 dB better with the bundled CT prior.
AUTO_TAU_SHARE = 2.5e-7
# Without --langevin-step, step * curvature: 2 is where Langevin steps begin to diverge.
AUTO_STEP = 1.0
NORM_MARGIN = 1.02  # ||A||^2 by power iteration comes from below

ODE_END = 0.01  # last level of the flow before zero, and at most this share of the first:
ODE_END_SHARE = 0.1


@dataclass(frozen=True)
class DapsSettings(ScheduleSettings):
    ode_steps: int = setting(
        1,
        "Denoiser calls per noise level, along the flow to the clean image; NFE divided by this, "
        "rounded down, is the number of levels. 1 is a single denoising, 5 is recommended.",
        low=1,
        high=1000,
        label="ODE steps per level",
    )
    langevin_steps: int = setting(
        100,
        "Langevin steps per noise level: more fit the measurement more closely.",
        low=1,
        high=100_000,
        label="Langevin steps per level",
    )
    langevin_step: float | None = setting(
        None,
        "Size of the first Langevin step. Without it, every level takes a stable one.",
        above=0,
        label="Langevin step size",
    )
    langevin_decay: float = setting(
        0.1,
        "Size of the last Langevin step relative to a given first one.",
        above=0,
        high=1,
        label="Langevin decay",
        rule=only_if_given("langevin_step", "Only with a Langevin step of your own."),
    )
    tau: float | None = setting(
        None,
        "SD of the measurement that the Langevin steps believe: smaller fits more closely. "
        "Without it, chosen from the measurement noise and ||A||.",
        above=0,
        label="tau",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nfe < self.ode_steps:
            raise RequestError(
                f"⟦nfe⟧ ({self.nfe}) must be at least ⟦ode_steps⟧ ({self.ode_steps})."
            )

    def sigmas(self, problem: Problem | None = None) -> list[float]:
        levels = self.nfe // self.ode_steps
        return karras_sigmas(levels, self.sigma_max, self.last_level(), self.schedule_rho)


def flow_to_clean(prior: Prior, x: Tensor, sigma: float, steps: int) -> Tensor:
    """Euler steps of dx/ds = (x - D(x; s)) / s from ``sigma`` to 0; one step is D(x; sigma)."""
    if steps == 1:
        return prior(x, sigma)
    levels = karras_sigmas(steps, sigma, min(ODE_END, ODE_END_SHARE * sigma))
    for now, then in itertools.pairwise([*levels, 0.0]):
        x = x + (then - now) / now * (x - prior(x, now))
    return x


class Langevin:
    """Images near ``clean`` that fit the data: exp(-|u - clean|^2 / 2s^2 - |Au - y|^2 / 2tau^2).

    The likelihood's gradient is A^T (A u - y) / tau^2, without a factor 2.
    """

    def __init__(self, problem: Problem, settings: DapsSettings) -> None:
        self.problem, self.settings = problem, settings
        self.sigmas = settings.sigmas()
        y, norm2 = problem.measurement, problem.operator.norm() ** 2
        noise = torch.as_tensor(problem.noise_sigma, dtype=y.dtype, device=y.device)
        if settings.tau is None:
            self.tau2 = noise**2 + AUTO_TAU_SHARE * norm2
        else:
            self.tau2 = torch.full_like(noise, settings.tau**2)
        largest: Tensor | float = 1.0
        if problem.weights is not None:
            largest = problem.weights.flatten(1).amax(1).view(-1, 1, 1, 1)
        self.stiffness = NORM_MARGIN * largest * norm2 / self.tau2  # of the likelihood, per slice
        self._refuse_divergence()

    def curvature(self, k: int) -> Tensor:
        """The largest eigenvalue of the negative log density at level ``k``."""
        return self.stiffness + 1 / self.sigmas[k] ** 2

    def step_size(self, k: int) -> Tensor:
        first, last = self.settings.langevin_step, self.settings.langevin_decay
        if first is None:
            return AUTO_STEP / self.curvature(k)
        return torch.full_like(self.tau2, first * (1 + k / len(self.sigmas) * (last - 1)))

    def _refuse_divergence(self) -> None:
        """A step beyond 2 / curvature grows without bound: say so before the run."""
        asked, levels = self.settings.langevin_step, range(len(self.sigmas))
        if asked is None:
            return
        excess = [float((self.step_size(k) * self.curvature(k) / 2).max()) for k in levels]
        worst = max(levels, key=excess.__getitem__)
        if excess[worst] >= 1:
            raise RequestError(
                f"⟦langevin_step⟧ {asked:g} would diverge (at noise level "
                f"{self.sigmas[worst]:.3g}): with ||A||^2 / tau^2 = "
                f"{float(self.stiffness.max()):.3g} it must stay below "
                f"{asked / excess[worst]:.3g}; make it smaller or ⟦tau⟧ "
                "larger, or leave it out."
            )

    def __call__(self, clean: Tensor, k: int, generator: Generators) -> Tensor:
        u, size, sigma = clean, self.step_size(k), self.sigmas[k]
        for _ in range(self.settings.langevin_steps):
            slope = (u - clean) / sigma**2 + self._misfit_slope(u) / self.tau2
            u = u - size * slope + (2 * size).sqrt() * normal_like(u, generator)
        return u

    def _misfit_slope(self, u: Tensor) -> Tensor:
        """A^T W (A u - y)."""
        residual, weights = self.problem.residual(u), self.problem.weights
        return self.problem.operator.adjoint(residual if weights is None else weights * residual)


class Daps(Solver):
    name, label = "daps", "DAPS"
    help = "At every noise level a clean image by Langevin steps, and fresh noise."
    place, colour, dash = 50, "#56B4E9", (3, 2)
    budgets: ClassVar = {
        "recommended": {"nfe": 1000, "ode_steps": 5},
        "matched-50": {"nfe": 50, "ode_steps": 1},
    }
    settings_class = DapsSettings

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior,
        settings: DapsSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        langevin, calls = Langevin(problem, settings), settings.ode_steps
        sigmas = [*langevin.sigmas, 0.0]
        if resume is None:
            done, clean = 0, settings.starting_image(problem, generator)
            noisy = clean + sigmas[0] * normal_like(clean, generator)
        else:
            done, clean, noisy = resume.k, resume.state["x"], resume.state["noisy"]
        guard = Guard(noisy)

        for k in range(done, len(langevin.sigmas)):
            clock, seen, clean_last = Stopwatch(noisy.device), noisy, clean
            with clock("denoiser"):
                z = flow_to_clean(settings.seen(prior, k), noisy, sigmas[k], calls)
            with clock("data"):
                clean = langevin(z, k, generator)
            noisy = clean + sigmas[k + 1] * normal_like(clean, generator)
            guard.check(k + 1, denoiser=z, Langevin_step=clean, renoising=noisy)
            yield sampling_iteration(
                problem,
                k=k + 1,
                total=len(langevin.sigmas),
                sigma=sigmas[k],
                z=z,
                x=clean,
                state={"x": clean, "noisy": noisy},
                seconds=clock.seconds,
                nfe=(k + 1) * calls,
                v=seen,
                v_tilde=seen,
                centre=clean_last,
            )
