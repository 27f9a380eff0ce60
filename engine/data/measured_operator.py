"""The operator of a measured scan, whose FBP knows that there is air outside the field of view.

In a prior's units air is not zero, so a square image is cut off by the round field of view of
the detector, and plain FBP of the converted data has the artefacts of a truncated scan. The
line integrals of attenuation have none: FBP is taken of those.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.physics.operator import Operator, WrappedOperator
from engine.priors.prior import IntensityMap


class MeasuredCT(WrappedOperator):
    """``operator`` with pseudo_inverse(y) = FBP(y + c A 1) - c, where -c is air."""

    def __init__(self, operator: Operator, intensity: IntensityMap) -> None:
        super().__init__(operator)
        self.air = -(1000 + intensity.offset) / intensity.scale
        self.lengths = operator.ray_lengths()

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        return self.operator.pseudo_inverse(y - self.air * self.lengths.to(y)) + self.air

    def describe(self) -> dict[str, Any]:
        return {**self.operator.describe(), "fbp_of": "attenuation"}

    def to(self, device: torch.device | str) -> MeasuredCT:
        super().to(device)
        self.lengths = self.lengths.to(device)
        return self
