"""DDNM (Wang et al. 2023) in sigma form: replace what the measurement knows, keep the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.random import Generators, normal_like
from engine.solvers.classical import SirtStep
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.ddim import DdimSettings, DdimSolver
from engine.solvers.homogenize import HomogenizeSettings, homogenize
from engine.spec.settings import setting

CG_TOLERANCE = 1e-6  # conjugate gradients stand for an exact inverse here


@dataclass(frozen=True)
class DdnmSettings(DdimSettings, HomogenizeSettings):
    pinv_iterations: int = setting(
        30,
        "Iterations of the pseudo-inverse where it has no closed form: SIRT, or conjugate "
        "gradients for several coils.",
        low=1,
        high=10_000,
        label="Pseudo-inverse iterations",
    )
    renoising: str = setting(
        "ddim",
        "Noise of the next level: the method's own mixture of old and fresh (ddim), or only "
        "what the spectrum of the data step's change lacks (sh).",
        choices=("ddim", "sh"),
        label="Noise of the next level",
    )


class Ddnm(DdimSolver):
    """x0 = z - A^+ (A z - y)."""

    name, label = "ddnm", "DDNM"
    help = "Replaces in each denoised image what the measurement knows."
    place, colour, dash = 30, "#F0E442", (10, 4)
    settings_class = DdnmSettings

    def data_fit(  # type: ignore[override]
        self, problem: Problem, settings: DdnmSettings
    ) -> Callable[[Tensor], Tensor]:
        """Where A^+ is stable, as in MRI, it is exact: the data step at rho = 0.

        Elsewhere, where an exact inverse would amplify noise without bound, it is SIRT. That
        is linear: k steps from z towards y are z + SIRT_k(y - A z) from zero.
        """
        count = settings.pinv_iterations
        if problem.operator.inverse_is_stable:
            project = DataStep(
                problem,
                DataStepSettings(
                    rho=0.0,
                    cg_iterations=count,
                    cg_tolerance=CG_TOLERANCE,
                    cg_warm_start=False,
                ),
            )
            return lambda z: project(z, 1.0)  # at rho = 0 the noise level plays no part
        step = SirtStep(problem)

        def sirt(z: Tensor) -> Tensor:
            for _ in range(count):
                z = step(z)
            return z

        return sirt

    def fills_spectrum(self, settings: DdnmSettings) -> bool:  # type: ignore[override]
        return settings.renoising == "sh"

    def renoise(  # type: ignore[override]
        self,
        clean: Tensor,
        z: Tensor,
        noise: Tensor,
        sigma: float,
        settings: DdnmSettings,
        generator: Generators,
    ) -> Tensor:
        if settings.renoising == "sh":
            return homogenize(clean, z, sigma, settings, normal_like(clean, generator))
        return super().renoise(clean, z, noise, sigma, settings, generator)
