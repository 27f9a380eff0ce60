"""Which slices are computed together, and which of them are kept.

Slices that are coupled along z need neighbours on both sides: a slab is computed with a halo,
and the halo is thrown away, because the slabs beside it compute those slices in its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.spec.errors import RequestError


@dataclass(frozen=True)
class Batch:
    """Slices by number; without coupling ``computed`` and ``kept`` are the same."""

    computed: tuple[int, ...]
    kept: tuple[int, ...]

    def to_dict(self) -> dict[str, list[int]]:
        return {"computed": list(self.computed), "kept": list(self.kept)}

    @classmethod
    def from_dict(cls, values: Any) -> Batch:
        try:
            batch = cls(tuple(values["computed"]), tuple(values["kept"]))
            usable = bool(batch.kept) and set(batch.kept) <= set(batch.computed)
        except (TypeError, KeyError):
            usable = False
        if not usable:
            raise RequestError("The volume's plan cannot be used: a batch of it is damaged.")
        return batch


def divide(numbers: Sequence[int], size: int, halo: int = 0) -> tuple[Batch, ...]:
    """Batches that keep ``size`` slices each and see ``halo`` more on either side."""
    return tuple(
        with_halo(numbers, begin, min(begin + size, len(numbers)), halo)
        for begin in range(0, len(numbers), size)
    )


def halves(batch: Batch, numbers: Sequence[int], halo: int = 0) -> tuple[Batch, Batch]:
    """The slices that a batch keeps as two batches, for less memory at a time."""
    begin = numbers.index(batch.kept[0])
    middle, end = begin + (len(batch.kept) + 1) // 2, begin + len(batch.kept)
    return with_halo(numbers, begin, middle, halo), with_halo(numbers, middle, end, halo)


def with_halo(numbers: Sequence[int], begin: int, end: int, halo: int) -> Batch:
    return Batch(
        tuple(numbers[max(0, begin - halo) : end + halo]),
        tuple(numbers[begin:end]),
    )
