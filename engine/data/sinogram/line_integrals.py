"""Counts and transmissions to line integrals: -log((data - dark) / (flat - dark))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST_TRANSMISSION = 1e-5  # a ray that lost everything; the integral is then 11.5


@dataclass(frozen=True)
class Rows:
    """The line integrals ``[views, detectors]`` of one slice, in the file's own order."""

    values: NDArray[np.float32]
    starved: int = 0  # rays whose transmission had to be raised to the least one


def from_transmission(transmission: NDArray) -> Rows:
    """Not-a-number stays what it is: the dataset says so, or calls the detector bin dead."""
    values = np.asarray(transmission, dtype=np.float64)
    low = values < LEAST_TRANSMISSION
    with np.errstate(invalid="ignore"):
        integrals = -np.log(np.where(low, LEAST_TRANSMISSION, values))
    return Rows(integrals.astype(np.float32), int(low.sum()))


def from_counts(counts: NDArray, flat: ArrayLike, dark: ArrayLike = 0.0) -> Rows:
    """A bin whose flat field is no brighter than its dark one is dead: not a number."""
    dark = np.asarray(dark, dtype=np.float64)
    light = np.asarray(flat, dtype=np.float64) - dark
    light = np.where(light > 0, light, np.nan)
    return from_transmission((np.asarray(counts, dtype=np.float64) - dark) / light)
