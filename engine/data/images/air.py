"""CT images never show less than air: what is stored below it is made air when it is read.

Scanners fill what they did not reconstruct with numbers such as -3024, whether or not the padding
tag names them. Simulated, these would be rays that grow on their way.
"""

from __future__ import annotations

import numpy as np

from engine.data.dataset import ImageDataset

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
