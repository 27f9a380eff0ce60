"""Small pictures of slices and series; runs off the GUI thread and knows no Qt."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from app.data.opened import Opened, SeriesItem
from app.data.opening import preview_of
from app.data.patient import window_of

SIDE = 96  # pixels of the longer side
TAIL = 0.001  # of the pixels at either end of an automatic window


def thumbnail(opened: Opened, number: int, side: int = SIDE) -> NDArray[np.uint8]:
    """Slice ``number`` through its window, at most ``side`` pixels wide and high."""
    return to_bytes(preview_of(opened, number), opened.modality, opened.window, side)


def thumbnail_of_series(
    opened: Opened, item: SeriesItem, side: int = SIDE
) -> NDArray[np.uint8] | None:
    """The middle slice of a series in the list; None when there is none to show."""
    if opened.found is None:
        return thumbnail(opened, opened.middle, side)
    from engine.data.readers.dicom.pixels import read_slice
    from engine.data.readers.dicom.reader import read_full_header

    series = opened.found[item.number - 1]
    if not series.slices:
        return None
    middle = series.slices[series.count // 2]
    values = read_slice(middle, series.modality)
    return to_bytes(values, series.modality, window_of(read_full_header(middle)), side)


def to_bytes(
    values: NDArray, modality: str, window: tuple[float, float] | None, side: int
) -> NDArray[np.uint8]:
    """CT through ``window`` or the usual one; MR, which has no scale, over its own range."""
    from engine.data.sinogram.scan_picture import block_mean
    from engine.export.outputs import DEFAULT_CT_WINDOW, linear_window, window_to_bytes
    from engine.spec.numbers import beyond_bodies

    small = block_mean(values, math.ceil(max(values.shape) / side))
    finite = small[np.isfinite(small)]
    if modality == "CT" and (window or not beyond_bodies(finite)):
        levels = window or DEFAULT_CT_WINDOW
    elif finite.size:
        low, high = np.quantile(finite, [TAIL, 1 - TAIL])
        levels = linear_window(float(low), float(high))
    else:
        levels = (0.5, 2.0)
    return window_to_bytes(np.nan_to_num(small, posinf=0.0, neginf=0.0), levels)


MOST_BYTES = 128 << 20


class PreviewCache:
    """Slices by number; those not looked at for longest go first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._images: OrderedDict[int, np.ndarray] = OrderedDict()

    def __len__(self) -> int:
        return len(self._images)

    @property
    def nbytes(self) -> int:
        return sum(image.nbytes for image in self._images.values())

    def get(self, number: int) -> np.ndarray | None:
        if number in self._images:
            self._images.move_to_end(number)
        return self._images.get(number)

    def put(self, number: int, image: np.ndarray) -> None:
        self._images[number] = image
        self._images.move_to_end(number)
        while len(self._images) > 1 and self.nbytes > self.most_bytes:
            self._images.popitem(last=False)

    def clear(self) -> None:
        self._images.clear()
