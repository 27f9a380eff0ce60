"""Whether a CT image has the unit it is said to have, judged by its values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Check
from engine.spec.input_options import give

NO_CONTRAST_HU = 20.0  # an image of HU has air and something else
DENSE_HU, THIN_HU = 4000.0, -500.0  # most of the object: denser than bone; hardly anything at all
TOO_MUCH_HU = 30_000.0


def check_image_unit(image: NDArray, unit: str) -> Check:
    """``image`` in HU, as it follows from ``unit``: hu, mu, mu-cm or normalised."""
    low, high = (float(q) for q in np.quantile(image, [0.001, 0.999]))
    typical = _typical(image, low, high)
    span = f"Values from {low:.4g} to {high:.4g} HU"
    if unit == "hu" and max(abs(low), abs(high)) < NO_CONTRAST_HU:
        right = (
            "mu" if typical < 0.06 else "mu-cm" if typical < 2.0 and low > -0.5 else "normalised"
        )
        return Check(
            "units",
            "doubtful",
            f"{span} hold no air and no tissue: they are no HU.",
            give({"unit": right}),
        )
    if unit == "mu" and typical > DENSE_HU:
        return Check(
            "units",
            "doubtful",
            f"{span}: most of it is denser than bone. Attenuation in 1/cm reads ten times too high "
            "as 1/mm; a scan at low energy does so, too.",
            f"{give({'unit': 'mu-cm'})}, or --mu-water for the scan's energy",
        )
    if unit == "mu-cm" and high < THIN_HU:
        return Check(
            "units",
            "doubtful",
            f"{span}: nothing is denser than lung. Attenuation in 1/mm reads ten times too low as "
            "1/cm.",
            give({"unit": "mu"}),
        )
    if unit == "normalised" and high > TOO_MUCH_HU:
        return Check(
            "units", "doubtful", f"{span}: they seem to be HU already.", give({"unit": "hu"})
        )
    return Check("units", "good", f"{span}.")


def _typical(image: NDArray, low: float, high: float) -> float:
    """The median of what is brighter than half way between the darkest and the brightest."""
    inside = image[image >= (low + high) / 2]
    return float(np.median(inside)) if inside.size else high
