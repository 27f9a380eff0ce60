"""DiffPIR (Zhu et al. 2023) in sigma form, with the same data step as DC-PnPDP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators
from engine.priors.prior import Prior
from engine.solvers.data_step import DataStep
from engine.solvers.diagnostics import Guard, Stopwatch, sampling_iteration
from engine.solvers.iteration import Iteration
from engine.solvers.solver import DiffusionSettings, Resume, Solver
from engine.spec.settings import setting


@dataclass(frozen=True)
class DiffpirSettings(DiffusionSettings):
    zeta: float = setting(
        1.0,
        "Share of fresh noise when stepping down: 1 forgets the old noise, 0 keeps all of it.",
        low=0,
        high=1,
    )


class Diffpir(Solver):
    name, label = "diffpir", "DiffPIR"
    settings_class = DiffpirSettings

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior,
        settings: DiffpirSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        sigmas = [*settings.sigmas(problem), 0.0]
        data_step = DataStep(problem, settings, resume.state if resume else None)
        n: Tensor | None
        if resume is None:
            done, clean = 0, settings.starting_image(problem, generator)
            n = settings.noise(0, sigmas[0], clean, generator, None)
            noisy = clean + sigmas[0] * n
        else:
            done, state = resume.k, resume.state
            clean, noisy, n = state["x"], state["noisy"], state.get("noise")
        guard, fresh, old = Guard(noisy), settings.zeta**0.5, (1 - settings.zeta) ** 0.5

        for k in range(done, settings.nfe):
            sigma, sigma_next, clock = sigmas[k], sigmas[k + 1], Stopwatch(noisy.device)
            seen, clean_last = noisy, clean
            with clock("denoiser"):
                z = settings.seen(prior, k)(noisy, sigma)
            with clock("data"):
                fit = data_step if k < settings.nfe - 1 else data_step.at_the_noise
                clean = fit(z, sigma)  # argmin ||Ax - y||^2 + rho ||x - z||^2
            noise = (noisy - clean) / sigma  # re-estimated from the data-consistent image
            n = settings.noise(k + 1, sigma_next, clean, generator, n)
            noisy = clean + sigma_next * (old * noise + fresh * n)
            guard.check(k + 1, denoiser=z, data_step=clean, renoising=noisy)
            yield sampling_iteration(
                problem,
                k=k + 1,
                total=settings.nfe,
                sigma=sigma,
                z=z,
                x=clean,
                state={"x": clean, "noisy": noisy, "noise": n, **data_step.state},
                seconds=clock.seconds,
                nfe=k + 1,
                v=seen,
                v_tilde=seen,
                centre=clean_last,
            )
