"""How much the result changes from seed to seed: mean and SD of every pixel, as runs come in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

LEAST_SEEDS = 4
# The map has settled when one more seed changes it by less than this share of itself, RMS, twice
# in a row; ``below`` replaces the share by a number in HU (or the input's scale).
SETTLED_SHARE = 0.1
IN_A_ROW = 2


@dataclass
class Spread:
    """Welford's sums over images that need not be kept."""

    count: int = 0
    mean: NDArray[np.float64] | None = None
    _squares: NDArray[np.float64] | None = None
    changes: list[float] = field(default_factory=list)  # RMS change of the SD map, by seed

    def add(self, image: np.ndarray) -> None:
        before = self.sd
        values = image.astype(np.float64)
        self.count += 1
        if self.mean is None or self._squares is None:
            self.mean, self._squares = values.copy(), np.zeros_like(values)
            return
        step = values - self.mean
        self.mean = self.mean + step / self.count
        self._squares = self._squares + step * (values - self.mean)
        if before is not None and self.sd is not None:
            self.changes.append(rms(self.sd - before))

    @property
    def sd(self) -> NDArray[np.float64] | None:
        """The sample SD (n - 1); None of fewer than two images."""
        if self.count < 2 or self._squares is None:
            return None
        return np.sqrt(self._squares / (self.count - 1))

    @property
    def own_error(self) -> float | None:
        """Relative standard error of each SD, for normal values: 1 / sqrt(2 (n - 1))."""
        return None if self.count < 2 else 1 / float(np.sqrt(2 * (self.count - 1)))

    def settled(self, below: float | None = None) -> bool:
        sd = self.sd
        if sd is None or self.count < LEAST_SEEDS or len(self.changes) < IN_A_ROW:
            return False
        limit = SETTLED_SHARE * rms(sd) if below is None else below
        return all(change <= limit for change in self.changes[-IN_A_ROW:])


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
