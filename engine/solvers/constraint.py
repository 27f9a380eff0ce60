"""What is known of an image beforehand: no value of CT lies below air, and where there is nothing.

Both are convex sets of one condition per pixel, so that the nearest image in them is a clamp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.physics.problem import Problem
from engine.physics.units import AIR_HU
from engine.spec.errors import RequestError
from engine.spec.settings import Settings, setting


@dataclass(frozen=True)
class ConstraintSettings(Settings):
    positivity: bool = setting(
        False, "CT: nothing attenuates less than air, so that no value falls below -1000 HU."
    )
    field_of_view: bool = setting(
        False,
        "Hold what a measured scan does not see at air (CT) or at no signal (MR): the corners "
        "outside the circle of the detector, pixels where no coil receives.",
    )


@dataclass(frozen=True)
class Constraint:
    """Images that are nowhere below ``lowest``, and ``outside`` where ``support`` is 0."""

    lowest: float = -math.inf
    support: Tensor | None = None  # broadcast to images
    outside: float = 0.0

    def apply(self, x: Tensor) -> Tensor:
        """The nearest image that is allowed; an allowed one comes back bit for bit."""
        x = x.clamp_min(self.lowest)
        return x if self.support is None else torch.where(self.support > 0, x, self.outside)


def constraint_of(problem: Problem, positivity: bool, field_of_view: bool) -> Constraint | None:
    """The constraints that were asked for, in the problem's units; None for none."""
    if problem.modality == "CT":
        air = float(problem.intensity.to_normalised(torch.tensor(AIR_HU)))
    elif positivity:
        raise RequestError("⟦positivity⟧ is for CT: an MR image has no lowest value.")
    else:
        air = 0.0  # no signal
    support = problem.operator.support() if field_of_view else None
    if not positivity and support is None:
        return None
    return Constraint(air if positivity else -math.inf, support, air)
