"""How many panes stand side by side, in how many columns, and which of them are seen at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeVar

from app.theme import GRID_PX

CAPTION_PX: Final = 40  # what a pane needs beside its image
GAP_PX: Final = GRID_PX // 4
LARGE_PX: Final = 512  # of an image that is read, across and down
MOST_LARGE: Final = 4
Pane = TypeVar("Pane")


def best_columns(count: int, width: int, height: int) -> int:
    """The number of columns that leaves the largest square image in every pane."""
    return max(range(1, count + 1), key=partial(_side, count, width, height), default=1)


def most_large(width: int, height: int) -> int:
    """How many images can be seen at once without getting small; at least one."""
    for count in range(MOST_LARGE, 1, -1):
        if _side(count, width, height, best_columns(count, width, height)) >= LARGE_PX:
            return count
    return 1


def _side(count: int, width: int, height: int, columns: int) -> float:
    """Of the largest square image in each of so many panes."""
    rows = math.ceil(count / columns)
    across = (width + GAP_PX) / columns - GAP_PX - 2  # 2: the line that shows the focus
    return min(across, (height + GAP_PX) / rows - GAP_PX - CAPTION_PX)


def pages_of(panes: Sequence[Pane], compare: Sequence[Pane], room: int) -> list[list[Pane]]:
    """What is seen at once when there is room for so many panes.

    The first pane, which the others are judged by, and the comparison are on every page.
    """
    if len(panes) + len(compare) <= room:
        return [[*panes, *compare]]
    if room <= len(compare):
        return [list(compare)]
    first = list(panes[:1]) if room > 1 else []
    step = room - len(first) - len(compare)
    others = panes[len(first) :]
    if step < 1:
        return [[*first, *compare]]
    # the last page is full, too: some of its images were on the one before
    starts = [min(start, len(others) - step) for start in range(0, len(others), step)]
    return [[*first, *others[start : start + step], *compare] for start in starts]
