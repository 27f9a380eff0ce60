"""Several neighbouring planes of a volume as one picture: maximum, mean, minimum."""

from __future__ import annotations

from enum import Enum

import numpy as np


class Slab(Enum):
    MAXIMUM = "maximum"
    MEAN = "mean"
    MINIMUM = "minimum"


_FUNCTIONS = {Slab.MAXIMUM: np.maximum, Slab.MEAN: np.add, Slab.MINIMUM: np.minimum}


def project(volume: np.ndarray, axis: int, how: Slab) -> np.ndarray:
    """All of ``volume`` along ``axis``, in float32."""
    function, count = _FUNCTIONS[how], volume.shape[axis]
    if axis == volume.ndim - 1:
        found = _folded(volume, function)
    else:
        found = function.reduce(volume, axis=axis, dtype=np.float32)
    return found / np.float32(count) if how is Slab.MEAN else found


def _folded(volume: np.ndarray, function: np.ufunc) -> np.ndarray:
    """Along the last axis, half onto half: NumPy's own reduction is five times slower there."""
    while (count := volume.shape[-1]) > 1:
        half = count // 2
        folded = function(volume[..., :half], volume[..., half : 2 * half], dtype=np.float32)
        if count % 2:
            function(folded[..., :1], volume[..., -1:], out=folded[..., :1])
        volume = folded
    return volume[..., 0].astype(np.float32)
