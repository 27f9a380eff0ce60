"""What a reader's hand feels: scrolling through a series, slabs of a volume."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

SLICES: Final = 300
SIDE: Final = 512
SLAB: Final = 20
TURNS: Final = 5
Until = Callable[[Callable[[], bool]], None]


def series(folder: Path) -> Path:
    """HU that differ from slice to slice."""
    path = folder / "series.npy"
    values = np.lib.format.open_memmap(path, "w+", np.int16, (SLICES, SIDE, SIDE))
    rows = np.arange(SIDE, dtype=np.int16)[:, None] - SIDE
    for number in range(SLICES):
        values[number] = rows + number
    values.flush()
    return path


def scroll(window: Any, until: Until) -> float:
    """Slices per second that are read and painted, one after the other, none left out."""
    link, pane, shown = window.grid.link, window.grid.pane("reference"), set[int]()

    def note(number: int, image: object) -> None:
        shown.add(number)

    link.set_slice(0)
    until(lambda: pane.image is not None and pane.image[0, 0] == -SIDE)
    window.data.preview.connect(note)
    began = time.perf_counter()
    for number in range(1, SLICES):
        link.set_slice(number)
        until(partial(shown.__contains__, number))
        pane.view.viewport().repaint()
    spent = time.perf_counter() - began
    window.data.preview.disconnect(note)
    return (SLICES - 1) / spent


def slab_ms() -> float:
    """Of the slowest of the three directions: the maximum over 20 planes of 512 x 512 x 512."""
    from engine.data.images.slab import Slab, project

    volume = np.empty((SIDE, SIDE, SIDE), np.float32)
    volume[:] = np.arange(SIDE, dtype=np.float32)
    middle = slice(SIDE // 2, SIDE // 2 + SLAB)
    times = []
    for axis in range(3):
        part = volume[(*[slice(None)] * axis, middle)]
        taken = []
        for _ in range(TURNS):
            began = time.perf_counter()
            project(part, axis, Slab.MAXIMUM)
            taken.append(1e3 * (time.perf_counter() - began))
        times.append(median(taken))
    return max(times)
