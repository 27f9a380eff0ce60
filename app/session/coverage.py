"""Which run has an image of a slice, and what to say and offer where none has."""

from __future__ import annotations

from collections.abc import Iterable

from app.runs.store import RunEntry, alike


def covering(entry: RunEntry, number: int, runs: Iterable[RunEntry]) -> RunEntry:
    """The run whose image stands in the pane of ``entry``: itself, where it has the slice.

    Else the newest that differs in nothing but its slices and has no pane of its own. With
    nobody to stand in, the run itself.
    """
    if entry.has_image_of(number) or (entry.running and number in (entry.slices or (number,))):
        return entry
    others = [
        other
        for other in runs
        if not other.visible and alike(entry.job, other.job) and other.has_image_of(number)
    ]
    return others[-1] if others else entry


def why_empty(entry: RunEntry, number: int) -> str:
    if entry.status == "failed":
        return entry.message
    if entry.slices and number not in entry.slices:
        return f"Slice {number + 1} is not computed with {entry.label}."
    if entry.stack is not None:
        if entry.running:
            return f"Slice {number + 1} is not computed yet: it is the next."
        return f"Slice {number + 1} was not computed: the stack was stopped before."
    return {"waiting": "Waiting …", "running": "Preparing …"}.get(entry.status, "No image.")


def lacks(entry: RunEntry, number: int) -> bool:
    """Whether a run has ended, or goes on elsewhere, without this slice."""
    if entry.stack is not None or entry.slices:
        outside = number not in entry.slices
        return outside or (not entry.running and not entry.has_image_of(number))
    return False


def nearest(runs: Iterable[RunEntry], number: int) -> int | None:
    """The slice next to this one that any of the runs has."""
    there = [
        one
        for entry in runs
        for one in (entry.stack.metrics if entry.stack is not None else entry.slices)
        if entry.has_image_of(one)
    ]
    return min(there, key=lambda one: (abs(one - number), one)) if there else None
