"""The slices of a run that goes through a stack one by one, as far as they are there."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class LiveSlice:
    """The newest iteration of a slice that is being computed."""

    number: int
    k: int
    K: int
    image: np.ndarray


class StackImages:
    """Written by the worker, read by the screen: a slice is whole before ``metrics`` name it.

    ``folder`` is where the slices are kept, ``series`` the finished result as a DICOM series.
    """

    def __init__(self, numbers: Sequence[int], size: tuple[int, int], folder: Path) -> None:
        self.folder, self.size = folder, size
        self.series: Path | None = None
        self.live: LiveSlice | None = None
        self.nfe = 0  # of one slice
        self.metrics: dict[int, dict[str, float]] = {}  # by number, of the slices that are there
        self._place = {number: at for at, number in enumerate(numbers)}
        self._values = scratch_array((len(numbers), *size))

    def __len__(self) -> int:
        return len(self._place)

    def put(self, number: int, image: np.ndarray) -> None:
        self._values[self._place[number]] = image

    def image(self, number: int) -> np.ndarray | None:
        return self._values[self._place[number]] if number in self.metrics else None

    def mean(self) -> dict[str, float]:
        """Every figure over the slices that have it."""
        names = {name for one in self.metrics.values() for name in one}
        return {
            name: float(np.mean([one[name] for one in self.metrics.values() if name in one]))
            for name in sorted(names)
        }


def scratch_array(shape: tuple[int, ...]) -> np.ndarray:
    """Room that the disk gives, not the memory, and that goes with the array."""
    with tempfile.TemporaryFile(prefix="dualscope-volume-") as file:
        return np.memmap(file, np.float32, "w+", shape=shape)
