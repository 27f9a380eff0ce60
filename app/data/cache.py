"""The pictures seen last, as many as fit."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

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
