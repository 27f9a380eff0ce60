"""What a phantom is: an image, its labels and what was hidden in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.physics.phantoms.shapes import Array
from engine.spec.errors import RequestError

MIN_SIZE, MAX_SIZE = 64, 1024


@dataclass(frozen=True)
class Lesion:
    """A lesion at (row, col) in pixels, counted like array indices (pixel centres are integers).

    `contrast` is its value minus that of the tissue around it: HU, or MR image units.
    """

    kind: str
    row: float
    col: float
    radius_mm: float
    contrast: float


@dataclass(frozen=True)
class Phantom:
    """A synthetic slice.

    `image` is float32 HU for CT and complex64 with a 0.99 quantile of 1 for MR, shape [H, W].
    `labels` is a uint8 map; `names[value]` says what a label value stands for (0: background).
    """

    image: Array
    pixel_mm: float
    description: str
    labels: Array
    names: dict[int, str]
    lesions: tuple[Lesion, ...] = field(default=())

    def mask(self, name: str) -> Array:
        """True where the label of that name is visible; all False when it is not in this slice."""
        values = [value for value, known in self.names.items() if known == name]
        return np.isin(self.labels, values)


def check_request(seed: int, size: int, choice: str | None, choices: tuple[str, ...]) -> None:
    """Refuse what no phantom can be drawn for, in words for the person who asked."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise RequestError(f"Phantom seed {seed!r}: use an integer of 0 or more.")
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if not whole or not MIN_SIZE <= size <= MAX_SIZE or size % 2:
        raise RequestError(
            f"Phantom size {size!r}: use an even number from {MIN_SIZE} to {MAX_SIZE}."
        )
    if choice is not None and choice not in choices:
        raise RequestError(f"Phantom '{choice}' is not known: use one of {', '.join(choices)}.")
