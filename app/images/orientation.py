"""The letters at the edges of an image: which way the patient lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.images.display import Orientation
from engine.spec.marks import NO_LETTERS, EdgeLetters, letters_of

if TYPE_CHECKING:
    from engine.data.dataset import Placement


def edge_letters(placement: Placement | None, orientation: Orientation) -> EdgeLetters:
    """What lies beyond each edge of the pane as it is turned now; nothing when unknown."""
    if placement is None:
        return NO_LETTERS
    along_row = np.asarray(placement.along_row, dtype=float)
    along_column = np.asarray(placement.along_column, dtype=float)

    def towards(x: float, y: float) -> str:
        columns, rows = orientation.to_image(x, y)
        return letters_of(columns * along_row + rows * along_column)

    return EdgeLetters(towards(-1, 0), towards(0, -1), towards(1, 0), towards(0, 1))
