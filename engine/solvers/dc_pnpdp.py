"""DC-PnPDP: plug-and-play ADMM with its dual variable and spectral homogenization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators
from engine.priors.prior import Prior
from engine.solvers.data_step import DataStep
from engine.solvers.diagnostics import Guard, Stopwatch, norms, psd_curves
from engine.solvers.homogenize import HomogenizeSettings, homogenize
from engine.solvers.iteration import Iteration
from engine.solvers.solver import DiffusionSettings, Resume, Solver
from engine.spec.settings import setting


@dataclass(frozen=True)
class DcPnpdpSettings(DiffusionSettings, HomogenizeSettings):
    """The switches of the paper's ablation, and all that the shared pieces take."""

    dual: bool = setting(
        True, "Keep the dual variable: the result then satisfies the measurement exactly."
    )
    injection: str = setting(
        "sh",
        "Noise added before denoising: none, plain white noise (awgn), or only what the "
        "residual's spectrum lacks (sh).",
        choices=("none", "awgn", "sh"),
    )
    inject_last: bool = setting(True, "Inject noise at the last noise level too.")


class DcPnpdp(Solver):
    name, label = "dc-pnpdp", "DC-PnPDP"
    settings_class = DcPnpdpSettings

    def iterate(  # type: ignore[override]
        self,
        problem: Problem,
        prior: Prior,
        settings: DcPnpdpSettings,
        generator: Generators,
        resume: Resume | None = None,
    ) -> Iterator[Iteration]:
        sigmas = settings.sigmas(problem)
        data_step = DataStep(problem, settings, resume.state if resume else None)
        if resume is None:
            done, z = 0, settings.starting_image(problem, generator)
            u, n = torch.zeros_like(z), None
        else:
            done, state = resume.k, resume.state
            z, u, n = state["z"], state["u"], state.get("noise")
        guard = Guard(z)

        for k in range(done, len(sigmas)):
            sigma, z_last, clock = sigmas[k], z, Stopwatch(z.device)
            with clock("data"):
                x = data_step(z - u, sigma)  # argmin ||Ax - y||^2 + rho ||x - z + u||^2
            v = x + u
            with clock("sh"):
                n = settings.noise(k, sigma, v, generator, n)
                v_tilde = self._inject(v, z, sigma, settings, n, k == len(sigmas) - 1)
            with clock("denoiser"):
                z = settings.seen(prior, k)(v_tilde, sigma)
            if settings.dual:
                u = u + x - z
            fitted, denoised = problem.residual(x), problem.residual(z)
            data_step.learn(denoised, fitted, sigma)
            last = k == len(sigmas) - 1
            image = data_step.answer(z, denoised, sigma) if last else z
            guard.check(k + 1, data_step=x, noise_injection=v_tilde, denoiser=z, dual_update=u)
            yield Iteration(
                k=k + 1,
                K=len(sigmas),
                sigma=sigma,
                z=z,
                x=x,
                image=image,
                residual_x=norms(fitted),
                residual_z=norms(denoised),
                gap=norms(x - z),
                dual=norms(u),
                state={"z": z, "u": u, "noise": n, **data_step.state},
                psd=psd_curves(v, v_tilde, z_last, sigma),
                noise={"residual": v - z_last, "homogenized": v_tilde - z_last},
                seconds=clock.seconds,
                nfe=k + 1,
            )

    @staticmethod
    def _inject(
        v: Tensor,
        z: Tensor,
        sigma: float,
        settings: DcPnpdpSettings,
        n: Tensor,
        last: bool,
    ) -> Tensor:
        if settings.injection == "none" or (last and not settings.inject_last):
            return v
        if settings.injection == "awgn":
            return v + sigma * n
        return homogenize(v, z, sigma, settings, n)
