"""DDS (Chung et al. 2024) in sigma form: a few conjugate-gradient steps from the denoised image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.ddim import DdimSettings, DdimSolver
from engine.spec.settings import setting

CG_TOLERANCE = 1e-6  # past this, further steps only move rounding errors


@dataclass(frozen=True)
class DdsSettings(DdimSettings):
    dds_iterations: int = setting(
        5,
        "Conjugate-gradient steps from each denoised image: few stay near it, many fit the "
        "measurement closely.",
        low=1,
        high=10_000,
        label="CG iterations (DDS)",
    )
    gamma: float = setting(
        1.0,
        "With measurement noise, the weight of the measurement against the denoised image; "
        "without noise the image is fitted to the measurement alone.",
        above=0,
        label="gamma",
    )


class ProximalFit(DataStep):
    """(I + gamma A^T A) x = z + gamma A^T y with noise, A^T A x = A^T y without.

    Divided by gamma the first is the usual data step with rho = 1 / gamma.
    """

    def __init__(self, problem: Problem, settings: DdsSettings) -> None:
        # From z every time: what keeps the image near it is that the steps are few.
        from_z = DataStepSettings(
            cg_iterations=settings.dds_iterations,
            cg_tolerance=CG_TOLERANCE,
            cg_warm_start=False,
            preconditioner="none",
        )
        super().__init__(problem, from_z)
        noise = torch.as_tensor(problem.noise_sigma, dtype=problem.measurement.dtype)
        # Per slice: whether a slice has noise must not depend on its neighbours.
        self.coupling = torch.where(noise > 0, 1 / settings.gamma, 0.0).to(problem.measurement)

    def rho(self, sigma: float) -> Tensor:
        return self.coupling


class Dds(DdimSolver):
    name, label = "dds", "DDS"
    help = "A few conjugate-gradient steps from each denoised image."
    place, colour, dash = 40, "#CC79A7", (8, 3, 2, 3, 2, 3)
    settings_class = DdsSettings

    def data_fit(  # type: ignore[override]
        self, problem: Problem, settings: DdsSettings
    ) -> Callable[[Tensor], Tensor]:
        fit = ProximalFit(problem, settings)
        return lambda z: fit(z, 1.0)  # the coupling does not follow the noise level
