"""Numbers from files that anybody may have written."""

from __future__ import annotations

import math
from typing import Any


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
