"""Numbers from files that anybody may have written, and what their size tells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

DENSER_THAN_BONE_HU = 4000.0


def as_float(value: Any) -> float:
    """A JSON number as a float; NaN for anything that is none or has too many digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def numbers_in(values: Any) -> dict[str, float]:
    """The entries of a JSON object that are numbers."""
    if not isinstance(values, dict):
        return {}
    found = {name: as_float(value) for name, value in values.items()}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def beyond_bodies(image: NDArray) -> bool:
    """Whether much of a CT image is denser than any bone: micro-CT, where HU mean little."""
    values = image[np.isfinite(image)]
    return bool(values.size) and float(np.quantile(values, 0.99)) > DENSER_THAN_BONE_HU
