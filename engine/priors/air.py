"""Air for priors that have never seen it.

A network trained on images clipped at, say, -800 HU pulls air (-1000 HU) up to -800, and the data
step makes the body pay for it. Where a scan shows that there is nothing but air, the image is
lifted to the lowest value the network knows before it is denoised, and lowered again after it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.units import AIR_HU, noise_scale
from engine.priors.prior import Prior

# A ray through air alone, as a line integral: 2 mm of water, or three times its noise.
EMPTY_RAY = 0.04
NOISES = 3.0


class AirShifted(Prior):
    """D(x - b) + b, where b is the step from the lowest known value down to air, in air only."""

    def __init__(self, prior: Prior, background: Tensor) -> None:
        self.prior, self.background = prior, background
        self.info = replace(prior.info, symmetric=False)  # its air stays where it is

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        background = self.background.to(x)
        return self.prior(x - background, sigma) + background

    def to(self, device: torch.device | str) -> AirShifted:
        return AirShifted(self.prior.to(device), self.background.to(device))


def with_air(prior: Prior, problem: Problem) -> Prior:
    """The prior, shifted in the air around the patient if it needs that."""
    lowest = prior.info.details.get("lowest_hu")
    if lowest is None or lowest <= AIR_HU or problem.operator.geometry is None:
        return prior
    step = (AIR_HU - lowest) / problem.intensity.scale
    return AirShifted(prior, step * air_mask(problem))


def air_mask(problem: Problem) -> Tensor:
    """1 where a ray that met nothing has passed, in every slice: ``[1, 1, H, W]``."""
    operator, y = problem.operator, problem.measurement
    air = float(problem.intensity.to_normalised(torch.tensor(AIR_HU)))
    ones = torch.ones(1, *operator.image_shape).to(y)
    scale = noise_scale(problem.intensity)  # of a line integral in the prior's units
    least = torch.as_tensor(problem.noise_sigma).to(y) * NOISES
    empty = y - air * operator.forward(ones) < torch.clamp(least, min=EMPTY_RAY * scale)
    touched = operator.adjoint(empty.to(y))
    # the sum of the weights tells a ray that crosses a pixel from one that grazes its corner
    crossed = touched > 0.5 * operator.adjoint(torch.ones_like(y)) / y.shape[-2]
    return crossed.all(dim=0, keepdim=True).to(y)
