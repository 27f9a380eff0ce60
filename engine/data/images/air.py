"""CT images never show less than air: what is stored below it is made air when it is read.

Scanners fill what they did not reconstruct with numbers such as -3024, whether or not the padding
tag names them. Simulated, these would be rays that grow on their way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Check, ImageDataset
from engine.spec.input_options import give

AIR_HU = -1000.0
LOWEST_HU = -1024.0  # noise about air is often stored down to here
NAME = "air"


class AirFloor:
    """Reads slices of ``dataset`` (CT) with nothing below air, and says so in its checks."""

    def __init__(self, dataset: ImageDataset) -> None:
        self.dataset, self.below = dataset, dataset.read
        self.shares: dict[int, float] = {}  # of the pixels that were changed, by slice
        self.lowest = 0.0

    def __call__(self, number: int) -> np.ndarray:
        values = self.below(number)
        low = values < LOWEST_HU
        if low.any():
            self.lowest = min(self.lowest, float(values[low].min()))
            values = np.where(low, np.float32(AIR_HU), values)
        first = number not in self.shares and low.any() and not any(self.shares.values())
        self.shares[number] = float(low.mean())
        if first:
            self.say()
        return values

    def say(self) -> None:
        shares = list(self.shares.values())
        if not any(shares):
            self.dataset.check(NAME, "good", f"Nothing lies below {LOWEST_HU:g} HU.")
            return
        share = 100 * sum(shares) / len(shares)
        shown = f"{share:.1f} %" if share >= 0.1 else "less than 0.1 %"
        looked = "1 slice" if len(shares) == 1 else f"{len(shares)} slices"
        self.dataset.check(
            NAME,
            "corrected",
            f"Values below {LOWEST_HU:g} HU (down to {self.lowest:g}) are taken as air, "
            f"{AIR_HU:g} HU: {shown} of the pixels ({looked} looked at).",
            "Nothing need be done; the files are not changed.",
        )


def keep_above_air(dataset: ImageDataset) -> None:
    """Give a CT dataset this floor; what is below it is said when a slice is read."""
    if dataset.modality == "CT":
        dataset.read = AirFloor(dataset)


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
            f"{give({'unit': 'mu-cm'})}, or ⟦mu_water⟧ for the scan's energy",
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
