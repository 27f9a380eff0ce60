"""How good a volume is in all three directions, and how much it flickers along the third.

Slices that are reconstructed one by one may each be good and yet disagree: what the measurement
leaves open is filled in anew in every slice. Axial metrics cannot see that. Coronal and sagittal
planes can, and the flicker number says it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.metrics.profiles import default_profile, quick
from engine.metrics.published import WINDOW_HU
from engine.physics.units import IntensityMap

AXES = ("axial", "coronal", "sagittal")
FEWEST_SLICES = 11  # the side of SSIM's window: thinner planes have no SSIM


@dataclass(frozen=True)
class AxisMetrics:
    """Means over the planes across one axis whose reference shows anything."""

    axis: str
    psnr: float
    ssim: float
    planes: int


def metrics_by_axis(
    modality: str,
    volume: np.ndarray,
    reference: np.ndarray,
    before_plane: Callable[[], None] = lambda: None,
) -> list[AxisMetrics]:
    """In the modality's default profile, plane by plane; ``[N, H, W]`` in HU or the MR scale.

    Coronal and sagittal planes of fewer than 11 slices are left out. ``before_plane`` is called
    for every plane, and may raise to end it.
    """
    count = 3 if len(volume) >= FEWEST_SLICES else 1
    found = [
        _metrics_across(
            modality,
            axis,
            (np.moveaxis(volume, axis, 0), np.moveaxis(reference, axis, 0)),
            before_plane,
        )
        for axis in range(count)
    ]
    return [one for one in found if one is not None]


def _metrics_across(
    modality: str,
    axis: int,
    pair: tuple[np.ndarray, np.ndarray],
    before_plane: Callable[[], None],
) -> AxisMetrics | None:
    profile, own_units = default_profile(modality), IntensityMap("hu" if modality == "CT" else "mr")
    values = []
    for plane, truth in zip(*pair, strict=True):
        before_plane()
        shown, wanted = (
            torch.from_numpy(np.array(p, np.float32))[None, None] for p in (plane, truth)
        )
        if has_contrast(modality, wanted):
            values.append(quick(profile, shown, wanted, own_units))
    if not values:
        return None
    psnr, ssim = (float(np.mean([value[name] for value in values])) for name in ("psnr", "ssim"))
    return AxisMetrics(AXES[axis], psnr, ssim, len(values))


def has_contrast(modality: str, reference: Tensor) -> bool:
    """Whether a profile can compare with a reference (in HU, or MR units) at all."""
    if modality == "MR":
        return bool(reference.any())
    seen = reference.clamp(-WINDOW_HU, WINDOW_HU)
    return bool(seen.amax() > seen.amin())


def flicker(volume: np.ndarray, reference: np.ndarray | None = None) -> float | None:
    """How much neighbouring slices disagree that should not, in HU or the MR scale.

    With a reference: the RMS of the error's change from slice to slice, divided by sqrt 2. It is
    0 when every slice has the same error, and equals the RMS error when the errors of neighbours
    have nothing to do with each other. Without one: the RMS of the second difference along z,
    divided by sqrt 6, which for independent noise is its SD; anatomy adds to it, so it can only
    be compared between reconstructions of the same volume. None with too few slices.
    """
    order, scale = (1, 2.0) if reference is not None else (2, 6.0)
    if len(volume) <= order:
        return None
    total = 0.0
    for s in range(len(volume) - order):  # slice by slice: a volume may be larger than memory
        near = np.asarray(volume[s : s + order + 1], np.float64)
        if reference is not None:
            near = near - reference[s : s + order + 1]
        total += float(np.square(np.diff(near, order, axis=0)).mean())
    return float(np.sqrt(total / (len(volume) - order) / scale))


def axis_facts(
    modality: str,
    volume: np.ndarray,
    reference: np.ndarray | None,
    neighbours: bool,
    before_plane: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """JSON-able, for the record of the volume; ``neighbours``: no slice was left out."""
    facts: dict[str, Any] = {"flicker": flicker(volume, reference) if neighbours else None}
    if reference is not None:
        facts["profile"] = default_profile(modality)
        for one in metrics_by_axis(modality, volume, reference, before_plane):
            facts[one.axis] = {"psnr": one.psnr, "ssim": one.ssim, "planes": one.planes}
    return facts
