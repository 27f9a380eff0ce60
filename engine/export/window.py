"""Grey levels: the window a person looks through, as DICOM defines it."""

from __future__ import annotations

import numpy as np

from engine.physics.problem import Problem
from engine.spec.errors import RequestError
from engine.spec.numbers import beyond_bodies

DEFAULT_CT_WINDOW = (0.0, 1600.0)  # the paper's limited-angle figures, [-800, 800] HU


def parse_window(text: str | None) -> tuple[float, float] | None:
    """'40/400' as (centre, width)."""
    if text is None:
        return None
    try:
        centre, width = (float(part) for part in text.split("/"))
        if not width > 0:
            raise ValueError
    except ValueError:
        raise RequestError(f"--window '{text}': give centre/width, such as 40/400.") from None
    return centre, width


def window_to_bytes(values: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Linear VOI of DICOM: centre and width to 0..255."""
    centre, width = window
    y = (values - (centre - 0.5)) / max(width - 1, 1e-6) + 0.5
    return np.round(255 * np.clip(y, 0, 1)).astype(np.uint8)


def default_window(problem: Problem, values: np.ndarray) -> tuple[float, float]:
    """CT: a fixed one, unless its values are no body's. Otherwise the range without its tails."""
    if problem.modality == "CT" and not beyond_bodies(values):
        return DEFAULT_CT_WINDOW
    low, high = np.quantile(values, [0.001, 0.999])
    return linear_window(float(low), float(high))


def linear_window(low: float, high: float) -> tuple[float, float]:
    """The centre and width that map ``low`` to black and ``high`` to white."""
    width = max(high - low, 1e-12) + 1
    return low + (width - 1) / 2 + 0.5, width
