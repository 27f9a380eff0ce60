"""What a scan sees of the image: the field of view.

The operator of a measured scan, whose FBP knows that there is air outside the field of view.

In a prior's units air is not zero, so a square image is cut off by the round field of view of
the detector, and plain FBP of the converted data has the artefacts of a truncated scan. The
line integrals of attenuation have none: FBP is taken of those. What lies outside the field of
view was not measured from all sides, and FBP makes values half-way to air of it: it is air.
Unless the object goes on there: then FBP extrapolates the sinogram, and nothing is air by rule.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.physics.fbp import EDGE_BINS, back_project, fbp
from engine.physics.geometry import CTGeometry
from engine.physics.operator import Operator, WrappedOperator
from engine.physics.units import IntensityMap
from engine.physics.view_weights import arc
from engine.spec.errors import RequestError

# A view whose end is this thick, relative to the thickest rays, has cut the object off.
CUT_OFF = 0.05


def field_of_view_mm(rays: CTGeometry) -> float:
    """Radius around the rotation centre that the detector sees (from one side at least)."""
    half, offset = rays.detectors * rays.pitch_mm / 2, abs(rays.detector_offset_mm)
    reach = half + offset if is_half_shifted(rays) else half - offset
    if reach <= 0:
        raise RequestError(
            f"The detector offset of {rays.detector_offset_mm:g} mm puts the rotation centre "
            f"outside the detector, which is {2 * half:g} mm wide."
        )
    if rays.source_origin_mm is None or rays.source_detector_mm is None:
        return reach
    return rays.source_origin_mm * math.sin(math.atan(reach / rays.source_detector_mm))


def is_half_shifted(rays: CTGeometry) -> bool:
    """A detector shifted on purpose sees one half at a time, and all of it in a full turn."""
    full_turn = arc(np.array(rays.angles_rad), 2 * math.pi)[2] > 1.9 * math.pi
    return full_turn and abs(rays.detector_offset_mm) > 0.1 * rays.detectors * rays.pitch_mm


def truncated_share(sinogram: Tensor, geometry: CTGeometry) -> float:
    """The share of view ends ``[B, 1, views, detectors]`` at which the object goes on.

    Of a detector that is shifted on purpose one end lies inside the object.
    """
    ends = [sinogram[..., :EDGE_BINS].mean(-1), sinogram[..., -EDGE_BINS:].mean(-1)]
    if is_half_shifted(geometry):
        ends = ends[1:] if geometry.detector_offset_mm > 0 else ends[:1]
    thick = torch.quantile(sinogram.flatten()[: 1 << 24], 0.99)
    return float((torch.stack(ends) > CUT_OFF * thick).double().mean())


def field_of_view(geometry: CTGeometry) -> Tensor:
    """1 in the circle that the detector sees in every view, 0 elsewhere: ``[1, 1, H, W]``.

    Of a limited arc the parts that only some views see count, too.
    """
    if geometry.is_limited_angle():
        seen = back_project(torch.ones(1, 1, geometry.views, geometry.detectors), geometry) > 0
    else:
        x, y = geometry.pixel_axes_mm()
        inside = np.hypot(x[None, :], y[:, None]) <= field_of_view_mm(geometry)
        seen = torch.from_numpy(inside)[None, None]
    return seen.float()


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
