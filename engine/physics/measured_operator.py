"""The operator of a measured scan, whose FBP knows that there is air outside the field of view.

In a prior's units air is not zero, so a square image is cut off by the round field of view of
the detector, and plain FBP of the converted data has the artefacts of a truncated scan. The
line integrals of attenuation have none: FBP is taken of those. What lies outside the field of
view was not measured from all sides, and FBP makes values half-way to air of it: it is air.
Unless the object goes on there: then FBP extrapolates the sinogram, and nothing is air by rule.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from engine.physics.fbp import fbp
from engine.physics.field_of_view import field_of_view
from engine.physics.operator import Operator, WrappedOperator
from engine.physics.units import IntensityMap


class MeasuredCT(WrappedOperator):
    """``operator`` with pseudo_inverse(y) = FBP(y + c A 1) - c, where -c is air.

    ``truncated`` : the object is wider than the detector
    """

    def __init__(
        self, operator: Operator, intensity: IntensityMap, truncated: bool = False
    ) -> None:
        super().__init__(operator)
        self.truncated = truncated
        self.air = -(1000 + intensity.offset) / intensity.scale
        self.lengths = operator.ray_lengths()

    @cached_property
    def _seen(self) -> Tensor:
        assert self.geometry is not None
        if self.truncated:
            return torch.ones(1, *self.image_shape)
        return field_of_view(self.geometry)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        y = y - self.air * self.lengths.to(y)
        if self.truncated:
            assert self.geometry is not None
            said = self.operator.describe()["fbp"]
            attenuation = fbp(y, self.geometry, said["filter"], said["weighting"], True)
        else:
            attenuation = self.operator.pseudo_inverse(y)
        return attenuation * self._seen.to(y) + self.air

    def support(self) -> Tensor:
        return self._seen.to(self.device)

    def describe(self) -> dict[str, Any]:
        outside = "extrapolated" if self.truncated else "air"
        about = {"fbp_of": "attenuation", "outside_field_of_view": outside}
        return {**self.operator.describe(), **about}

    def to(self, device: torch.device | str) -> MeasuredCT:
        super().to(device)
        self.lengths = self.lengths.to(device)
        return self
