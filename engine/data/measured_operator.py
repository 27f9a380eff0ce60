"""The operator of a measured scan, whose FBP knows that there is air outside the field of view.

In a prior's units air is not zero, so a square image is cut off by the round field of view of
the detector, and plain FBP of the converted data has the artefacts of a truncated scan. The
line integrals of attenuation have none: FBP is taken of those. What lies outside the field of
view was not measured from all sides, and FBP makes values half-way to air of it: it is air.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from engine.physics.field_of_view import field_of_view
from engine.physics.operator import Operator, WrappedOperator
from engine.priors.prior import IntensityMap


class MeasuredCT(WrappedOperator):
    """``operator`` with pseudo_inverse(y) = FBP(y + c A 1) - c, where -c is air."""

    def __init__(self, operator: Operator, intensity: IntensityMap) -> None:
        super().__init__(operator)
        self.air = -(1000 + intensity.offset) / intensity.scale
        self.lengths = operator.ray_lengths()

    @cached_property
    def _seen(self) -> Tensor:
        assert self.geometry is not None
        return field_of_view(self.geometry)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        attenuation = self.operator.pseudo_inverse(y - self.air * self.lengths.to(y))
        return attenuation * self._seen.to(y) + self.air

    def support(self) -> Tensor:
        return self._seen.to(self.device)

    def describe(self) -> dict[str, Any]:
        about = {"fbp_of": "attenuation", "outside_field_of_view": "air"}
        return {**self.operator.describe(), **about}

    def to(self, device: torch.device | str) -> MeasuredCT:
        super().to(device)
        self.lengths = self.lengths.to(device)
        return self
