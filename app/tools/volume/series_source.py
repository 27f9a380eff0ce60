"""The open series as a volume, beside the stack that was reconstructed from it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from app.runs.stack import scratch_array
from app.tools.volume.source import NO_PLACE, REFERENCE, RESULT, Facts, seen
from app.tools.volume.space import ONE, Cut, Thick, Voxel, cuts_of
from engine.spec.errors import DualscopeError

if TYPE_CHECKING:
    from app.data.opened import Opened
    from app.runs.store import RunEntry

TURN_S: Final = 0.1  # of reading, before a cut may be asked for
UNEVEN: Final = 0.02  # of the mean distance of slices: more is said
TILT: Final = 0.01  # mm by which a slice may lie beside the one before it, to the mm


@dataclass(eq=False)
class SeriesSource:
    """Read slice by slice, the nearest to ``start`` first. Not for the GUI thread."""

    data: Opened
    entry: RunEntry | None  # a run that has a stack of these data
    start: int
    cuts: tuple[Cut, Cut, Cut] = field(init=False)
    source: np.ndarray = field(init=False)
    result: np.ndarray | None = field(init=False, default=None)
    read: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    made: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        data = self.data
        self.cuts = cuts_of(data.placements, data.pixel_mm, data.dataset.slice_mm)
        self.source = scratch_array(self.shape)
        if self.entry is not None:
            self.result = scratch_array(self.shape)

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.data.count, *self.data.image_size)

    @property
    def place(self) -> Path:
        run = self.entry.run_id if self.entry is not None else ""
        return Path(self.data.text) / str(self.data.options.get("dataset", "")) / run

    @property
    def unread(self) -> bool:
        return len(self.read | self.failed) < self.data.count

    def refresh(self) -> Facts:
        """Read on for a moment, and take what the run has finished meanwhile."""
        end = time.monotonic() + TURN_S
        missing = set(range(self.data.count)) - self.read - self.failed
        for number in sorted(missing, key=lambda n: abs(n - self.start)):
            try:
                self.source[number] = self.data.dataset.preview(number)
                self.read.add(number)
            except (DualscopeError, ValueError):  # the main window says why
                self.failed.add(number)
            if time.monotonic() > end:
                break
        stack = self.entry.stack if self.entry is not None else None
        if stack is not None and self.result is not None:
            for number in sorted(set(stack.metrics) - self.made):
                image = stack.image(number)
                if image is not None and image.shape == self.shape[1:]:
                    self.result[number] = image
                    self.made.add(number)
        return self.facts()

    def facts(self) -> Facts:
        data, entry = self.data, self.entry
        count, there = data.count, self.read if entry is None else self.made
        notes = []
        if self.unread:
            notes.append(f"{len(self.read)} of {count} slices are read.")
        if entry is not None and len(self.made) < count:
            notes.append(f"{len(self.made)} of {count} slices are reconstructed.")
        if self.failed:
            notes.append(f"{len(self.failed)} slices cannot be read.")
        notes += geometry_notes(data)
        what = "Source" if data.kind == "image" else "All data"
        return Facts(
            self.place,
            entry.name if entry is not None else data.name,
            data.modality,
            self.shape,
            tuple(range(count)),
            frozenset(there),
            entry is not None,
            self.cuts,
            notes=tuple(notes),
            title=data.screen_name,
            names=("Result", what) if entry is not None else (what, what),
            exportable=False,
            reading_step=data.reading_step,
        )

    def cut(self, what: str, axis: int, voxel: Voxel, slab: Thick = ONE) -> np.ndarray:
        cut = self.cuts[axis]
        source = seen(cut, self.source, self.read, voxel, slab)
        if self.result is None or what == REFERENCE:
            return source
        result = seen(cut, self.result, self.made, voxel, slab)
        return result if what == RESULT else result - source


def geometry_notes(data: Opened) -> list[str]:
    """What a reader must know before trusting a length across the slices."""
    placed = data.placements
    if not placed:
        return [] if data.dataset.slice_mm else [NO_PLACE]
    if len(placed) < 3:
        return []
    steps = np.diff([one.position for one in placed], axis=0)
    along = steps @ np.asarray(placed[0].normal)
    beside = np.linalg.norm(steps - along[:, None] * np.asarray(placed[0].normal), axis=1)
    notes = []
    mean = float(np.abs(along).mean())
    if mean and float(np.abs(np.abs(along) - mean).max()) > UNEVEN * mean:
        notes.append("Slices are unevenly spaced: lengths across them are approximate.")
    if mean and float(beside.max()) > TILT * mean:
        degrees = math.degrees(math.atan2(float(beside.mean()), mean))
        notes.append(f"The stack is slanted by {degrees:.0f}°: cuts across it are sheared.")
    return notes
