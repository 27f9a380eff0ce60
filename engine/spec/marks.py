"""What a picture that leaves the program says in its pixels, in the window and elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

RESEARCH: Final = "Research use - not for diagnosis"
CORNERS: Final = ("bottom left", "bottom right", "top left", "top right")
ENDED_WELL: Final = ("", "done", "waiting")

# DICOM's patient axes: x grows to the left, y to the back, z to the head
_LETTERS: Final = (("R", "L"), ("A", "P"), ("F", "H"))
_TILT: Final = 0.17  # sine of 10 degrees: a direction less tilted than this gets one letter


class EdgeLetters(NamedTuple):
    left: str = ""
    top: str = ""
    right: str = ""
    bottom: str = ""


NO_LETTERS: Final = EdgeLetters()


@dataclass(frozen=True)
class Marks:
    """``lines`` stand in a corner, letters at the edges; a bar needs the size of a pixel."""

    lines: tuple[str, ...] = (RESEARCH,)
    letters: EdgeLetters = NO_LETTERS
    mm_per_pixel: float | None = None
    corner: str = CORNERS[0]  # the marks can be moved, never left out

    def __post_init__(self) -> None:
        if RESEARCH not in self.lines:
            object.__setattr__(self, "lines", (RESEARCH, *self.lines))


def calls_words(asked: int | None, done: int | None, status: str = "") -> str:
    """'NFE 12', or 'NFE 5 of 12, cancelled': what was made, not what was asked for."""
    if asked is None:
        return ""
    short = done is not None and done != asked
    words = f"NFE {done} of {asked}" if short else f"NFE {asked}"
    return words if status in ENDED_WELL else f"{words}, {status}"


def letters_of(direction: np.ndarray) -> str:
    """The patient's sides that a direction points to, the nearest first: 'L', 'AL', 'PFR'."""
    order = np.argsort(-np.abs(direction), kind="stable")
    return "".join(
        _LETTERS[axis][int(direction[axis] > 0)] for axis in order if abs(direction[axis]) > _TILT
    )


def round_length(most: float) -> float:
    """The longest of 1, 2, 5, 10, 20, ... that is not longer than ``most``."""
    power = 10.0 ** math.floor(math.log10(most))
    return max(step * power for step in (1, 2, 5) if step * power <= most * (1 + 1e-9))
