"""What a scan sees of the image: the field of view."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from engine.errors import RequestError
from engine.physics.fbp import back_project
from engine.physics.geometry import CTGeometry
from engine.physics.view_weights import arc


def field_of_view_mm(rays: CTGeometry) -> float:
    """Radius around the rotation centre that the detector sees (from one side at least)."""
    half, offset = rays.detectors * rays.pitch_mm / 2, abs(rays.detector_offset_mm)
    full_turn = arc(np.array(rays.angles_rad), 2 * math.pi)[2] > 1.9 * math.pi
    # A detector shifted on purpose sees one half at a time, and all of it in a full turn.
    reach = half + offset if full_turn and offset > 0.2 * half else half - offset
    if reach <= 0:
        raise RequestError(
            f"The detector offset of {rays.detector_offset_mm:g} mm puts the rotation centre "
            f"outside the detector, which is {2 * half:g} mm wide."
        )
    if rays.source_origin_mm is None or rays.source_detector_mm is None:
        return reach
    return rays.source_origin_mm * math.sin(math.atan(reach / rays.source_detector_mm))


def field_of_view(geometry: CTGeometry) -> Tensor:
    """1 in the circle that the detector sees in every view, 0 elsewhere: ``[1, 1, H, W]``.

    Of a limited arc the parts that only some views see count, too.
    """
    if geometry.leaves_a_wedge():
        seen = back_project(torch.ones(1, 1, geometry.views, geometry.detectors), geometry) > 0
    else:
        x, y = geometry.pixel_axes_mm()
        inside = np.hypot(x[None, :], y[:, None]) <= field_of_view_mm(geometry)
        seen = torch.from_numpy(inside)[None, None]
    return seen.float()
