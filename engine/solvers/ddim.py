"""What DDNM and DDS share: denoise, fit the measurement, renoise with the network's noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators, normal_like
from engine.priors.prior import Prior
from engine.solvers.diagnostics import Guard, Stopwatch, sampling_iteration
from engine.solvers.iteration import Iteration
from engine.solvers.solver import USUAL_BUDGETS, Resume, ScheduleSettings, Solver
from engine.spec.settings import setting


@dataclass(frozen=True)
class DdimSettings(ScheduleSettings):
    eta: float = setting(
        0.85,
        "Amplitude of fresh noise when stepping down: 1 forgets the noise the denoiser found, "
        "0 keeps all of it.",
        low=0,
        high=1,
        label="eta",
    )


class DdimSolver(Solver):
    """z = D(x; s), x0 = fit(z), x = x0 + s_next (eta n + sqrt(1 - eta^2) (x - z) / s).

    The noise (x - z) / s is the network's own; DiffPIR estimates it anew from x0.
    """

    budgets = USUAL_BUDGETS

    @abstractmethod
    def data_fit(self, problem: Problem, settings: DdimSettings) -> Callable[[Tensor], Tensor]:
        """The function that makes a denoised image agree with the measurement."""

    def renoise(
        self,
        clean: Tensor,
        z: Tensor,
        noise: Tensor,
        sigma: float,
        settings: DdimSettings,
        generator: Generators,
    ) -> Tensor:
        """The image the denoiser sees at the next level ``sigma``."""
        old, fresh = (1 - settings.eta**2) ** 0.5, settings.eta
        return clean + sigma * (old * noise + fresh * normal_like(clean, generator))

    def fills_spectrum(self, settings: DdimSettings) -> bool:
        """Whether ``renoise`` adds only what the spectrum of ``clean - z`` lacks."""
        return False

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior,
        settings: DdimSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        sigmas, fit = [*settings.sigmas(), 0.0], self.data_fit(problem, settings)
        if resume is None:
            done, clean = 0, settings.starting_image(problem, generator)
            z, noisy = clean, clean + sigmas[0] * normal_like(clean, generator)
        else:
            done, clean, z, noisy = resume.k, *(resume.state[n] for n in ("x", "z", "noisy"))
        guard, fills = Guard(noisy), self.fills_spectrum(settings)

        for k in range(done, settings.nfe):
            sigma, sigma_next, clock = sigmas[k], sigmas[k + 1], Stopwatch(noisy.device)
            seen, clean_last, z_last = noisy, clean, z
            with clock("denoiser"):
                z = settings.seen(prior, k)(noisy, sigma)
            with clock("data"):
                clean = fit(z)
            noise = (noisy - z) / sigma
            with clock("sh") if fills else nullcontext():
                noisy = self.renoise(clean, z, noise, sigma_next, settings, generator)
            guard.check(k + 1, denoiser=z, data_step=clean, renoising=noisy)
            yield sampling_iteration(
                problem,
                k=k + 1,
                total=settings.nfe,
                sigma=sigma,
                z=z,
                x=clean,
                state={"x": clean, "z": z, "noisy": noisy},
                seconds=clock.seconds,
                nfe=k + 1,
                v=clean_last if fills else seen,
                v_tilde=seen,
                centre=z_last if fills else clean_last,
            )
