"""Whether a measured object fits into the field of view and into the image."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.data.dataset import Dataset
from engine.physics.field_of_view import CUT_OFF, field_of_view_mm, truncated_share
from engine.physics.geometry import CTGeometry
from engine.physics.projection import ray_lengths

# Of the view ends, and of the rays beside the image: fewer are noise or a stray bin.
FEW = 0.05


def check_field(dataset: Dataset, sinogram: Tensor, geometry: CTGeometry) -> bool:
    """Says it in the list of checks; whether the detector cuts the object off.

    ``sinogram`` holds line integrals ``[B, 1, views, detectors]``.
    """
    cut, radius = truncated_share(sinogram, geometry), field_of_view_mm(geometry)
    if cut > FEW:
        side = min(geometry.image_size) * geometry.pixel_mm
        sentence = (
            f"At {cut:.0%} of their ends the views still see something: the object is wider than "
            f"the detector, or the air beside it is not at zero. FBP extrapolates"
        )
        if side > 2.2 * radius:
            sentence += f"; outside a circle of {radius:.4g} mm the image is a guess."
            dataset.check("field of view", "corrected", sentence)
        else:
            dataset.check(
                "field of view",
                "doubtful",
                f"{sentence}; iterative methods have no room for what lies beside the detector.",
                "Give ⟦extended_fov⟧ 2, or as much as the object is wider than the detector; for "
                "counts, correct ⟦scan_air⟧ or the flat field.",
            )
        return True
    beside = sinogram[..., torch.from_numpy(ray_lengths(geometry) == 0)]
    if beside.numel() and bool((beside > CUT_OFF * sinogram.max()).double().mean() > FEW):
        dataset.check(
            "field of view",
            "doubtful",
            "Rays beside the image meet something: the object is larger than the image.",
            "Give a larger ⟦size⟧, or larger pixels with ⟦pixel_mm⟧.",
        )
    else:
        dataset.check(
            "field of view", "good", f"The object fits into the circle of {radius:.4g} mm."
        )
    return False
