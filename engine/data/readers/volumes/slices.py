"""One slice at a time out of an array whose axes may be in any order."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from engine.spec.errors import RequestError

MAX_VALUES = 1 << 28  # of one slice
MAX_SLICES = 50_000


class Indexable(Protocol):
    """What slices are taken from: an array, or a file read when asked."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, index: Any) -> Any: ...


class SliceView:
    """``view[n]`` is slice n as ``[a, b]``, whatever the order of the array's axes."""

    def __init__(self, array: Indexable, order: tuple[int | None, int, int]) -> None:
        self._array, self._order = array, order
        along, a, b = order
        count = 1 if along is None else array.shape[along]
        self.shape = (count, array.shape[a], array.shape[b])
        self.dtype = array.dtype
        self.ndim = 3
        self.size = count * self.shape[1] * self.shape[2]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, number: int) -> np.ndarray:
        along, a, b = self._order
        index: list[Any] = [slice(None)] * len(self._array.shape)
        if along is not None:
            index[along] = range(self.shape[0])[number]
        plane = np.asarray(self._array[tuple(index)])
        return plane if a < b else plane.T


def by_slices(
    array: Indexable, name: str, names: tuple[str, str, str], axes: str | None = None
) -> SliceView:
    """The array as slices; ``names`` are those of slice and of a slice's two axes.

    Without ``axes`` the last two axes are a slice's, and the first counts the slices.
    """
    dimensions = len(array.shape)
    if dimensions not in (2, 3) or 0 in array.shape:
        raise RequestError(
            f"{name} holds an array of shape {array.shape}: give two or three axes "
            f"({', '.join(names)})."
        )
    if axes is None:
        order: tuple[str, ...] = names[1:] if dimensions == 2 else names
    else:
        order = tuple(part.strip() for part in axes.split(","))
    if (
        len(order) != dimensions
        or set(order) | {names[0]} != set(names)
        or len(set(order)) != len(order)
    ):
        raise RequestError(
            f"{name} has {dimensions} axes; ⟦axes⟧ must name them in order, out of "
            f"{','.join(names)}, not '{','.join(order)}'."
        )
    along = order.index(names[0]) if names[0] in order else None
    view = SliceView(array, (along, order.index(names[1]), order.index(names[2])))
    if view.shape[1] * view.shape[2] > MAX_VALUES:
        raise RequestError(f"{name} has slices of {view.shape[1:]} values: too large.")
    if view.shape[0] > MAX_SLICES:
        raise RequestError(f"{name} has {view.shape[0]} slices: at most {MAX_SLICES} can be used.")
    return view
