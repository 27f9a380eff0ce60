"""Where to compare: inside the body, and inside the scan's field of view.

Air is easy to get right and fills half of a slice, so a figure over the whole image flatters
every method. The body is found in the reference, never in the image that is judged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.physics.units import IntensityMap

TISSUE_HU = -500.0
# MR: the foreground begins at this share of the magnitude's 0.99 quantile, above noise and ghosts.
FOREGROUND = 0.1
# Shares of the image's side. A thin table that touches the body is cut off first, since it may
# enclose air with it; then, when the lungs are filled, what is thicker: a mattress, a cushion.
THIN, THICK = 0.008, 0.02
LEAST_SHARE = 1e-3  # of the image; what is smaller is no body


def body_mask(reference: Tensor, intensity: IntensityMap | None) -> Tensor:
    """Boolean ``[B, 1, H, W]`` of a normalised reference: the largest part, its holes filled.

    CT (``kind='hu'``): above -500 HU without table and blankets. MR: the foreground. A slice
    without a body is all False.
    """
    find: Callable[[np.ndarray], np.ndarray] = _torso
    if intensity is not None and intensity.kind == "hu":
        dense = (intensity.to_physical(reference) > TISSUE_HU)[:, :1]
    else:
        find = _foreground
        magnitude = reference.square().sum(dim=1, keepdim=True).sqrt()
        # quantile() takes 16 million values at most; of a slice these are all
        peak = torch.stack([torch.quantile(m.flatten()[: 1 << 24], 0.99) for m in magnitude])
        dense = magnitude > FOREGROUND * peak.reshape(-1, 1, 1, 1)
    masks = [find(one) for one in dense[:, 0].cpu().numpy()]
    return torch.from_numpy(np.stack(masks))[:, None].to(reference.device)


def _torso(dense: np.ndarray) -> np.ndarray:
    from scipy.ndimage import binary_fill_holes

    side = min(dense.shape)
    body = binary_fill_holes(_largest_opened(dense, max(1, round(THIN * side))))
    return _enough(binary_fill_holes(_largest_opened(body, max(1, round(THICK * side)))))


def _foreground(bright: np.ndarray) -> np.ndarray:
    """Skull and cerebrospinal fluid are dark, so scalp and brain are joined first."""
    from scipy.ndimage import binary_fill_holes, distance_transform_edt

    side = min(bright.shape)
    if not bright.any():
        return bright
    radius = max(1, round(THICK * side))
    near = distance_transform_edt(~bright) <= radius
    # beyond the edge of the image nothing is eroded: a head may be cut off there
    closed = distance_transform_edt(np.pad(near, 1, mode="edge"))[1:-1, 1:-1] > radius
    joined = binary_fill_holes(closed | bright)
    return _enough(binary_fill_holes(_largest_opened(joined, max(1, round(THIN * side)))))


def _enough(body: np.ndarray) -> np.ndarray:
    return body if body.mean() >= LEAST_SHARE else np.zeros_like(body)


def _largest_opened(mask: np.ndarray, radius: int) -> np.ndarray:
    """The largest part of ``mask`` that hangs together by more than twice ``radius`` pixels."""
    from scipy.ndimage import distance_transform_edt, label

    # beyond the edge of the image the body goes on
    depth = distance_transform_edt(np.pad(mask, 1, mode="edge"))[1:-1, 1:-1]
    labels, count = label(depth > radius)
    if count == 0:
        return np.zeros_like(mask)
    core = labels == 1 + int(np.bincount(labels.ravel())[1:].argmax())
    near: np.ndarray = (distance_transform_edt(~core) <= radius + 0.5) & mask
    return near
