"""The letters at the edges of an image: which way the patient lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from app.images.display import Orientation

if TYPE_CHECKING:
    from engine.data.dataset import Placement

# DICOM's patient axes: x grows to the left, y to the back, z to the head
_LETTERS: Final = (("R", "L"), ("A", "P"), ("F", "H"))
_TILT: Final = 0.17  # sine of 10 degrees: a direction less tilted than this gets one letter


class EdgeLetters(NamedTuple):
    left: str = ""
    top: str = ""
    right: str = ""
    bottom: str = ""


NO_LETTERS: Final = EdgeLetters()


def letters_of(direction: np.ndarray) -> str:
    """The patient's sides that a direction points to, the nearest first: 'L', 'AL', 'PFR'."""
    order = np.argsort(-np.abs(direction), kind="stable")
    return "".join(
        _LETTERS[axis][int(direction[axis] > 0)] for axis in order if abs(direction[axis]) > _TILT
    )


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
