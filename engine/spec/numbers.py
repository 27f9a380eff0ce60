"""Numbers from files that anybody may have written, and what their size tells."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


def regions_in_words(metrics: Mapping[str, float]) -> list[str]:
    """A sentence for the metrics inside the body, and for those in the field of view."""
    found = []
    for region, place in (("body", "In the body"), ("fov", "In the field of view")):
        parts = [
            f"{label} {metrics[name]:{digits}}{unit}"
            for name, label, digits, unit in (
                (f"psnr_{region}", "PSNR", ".2f", " dB"),
                (f"ssim_{region}", "SSIM", ".3f", ""),
                (f"hu_mae_{region}", "MAE", ".1f", " HU"),
            )
            if name in metrics
        ]
        if parts:
            found.append(f"{place}: {', '.join(parts)}.")
    return found


def beyond_bodies(image: NDArray) -> bool:
    """Whether much of a CT image is denser than any bone: micro-CT, where HU mean little."""
    values = image[np.isfinite(image)]
    return bool(values.size) and float(np.quantile(values, 0.99)) > DENSER_THAN_BONE_HU
