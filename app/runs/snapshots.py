"""The images of past iterations, within a fixed amount of memory.

While there is room every iteration is kept; then every second, every fourth, and so on, so
that the scrubber always spans the whole run. The first and the newest are always there.
"""

from __future__ import annotations

import threading
from bisect import bisect_left

import numpy as np

DEFAULT_BYTES = 48 << 20


class Snapshots:
    """Written by the worker, read by the screen; arrays are handed over, never changed."""

    def __init__(self, most_bytes: int = DEFAULT_BYTES) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._stride, self._first = 1, 1
        self._kept: dict[int, tuple[float, np.ndarray]] = {}  # k -> sigma, [B, H, W]

    def add(self, k: int, sigma: float, images: np.ndarray) -> None:
        with self._lock:
            if not self._kept:
                self._first = k  # a resumed run does not begin at 1
            else:
                newest = next(reversed(self._kept))
                if not self._on_grid(newest):
                    del self._kept[newest]
            self._kept[k] = (sigma, images)
            most = max(3, self.most_bytes // max(images.nbytes, 1))
            while len(self._kept) > most:
                self._stride *= 2
                self._kept = {
                    n: item for n, item in self._kept.items() if self._on_grid(n) or n == k
                }

    def _on_grid(self, k: int) -> bool:
        return (k - self._first) % self._stride == 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(images.nbytes for _, images in self._kept.values())

    def iterations(self) -> list[int]:
        """The k that are kept, rising."""
        with self._lock:
            return list(self._kept)

    def newest(self) -> int | None:
        with self._lock:
            return next(reversed(self._kept), None)

    @property
    def first(self) -> int:
        return self._first

    def at(self, k: int) -> tuple[int, float, np.ndarray] | None:
        """The kept iteration nearest to ``k``: its k, sigma and images ``[B, H, W]``."""
        with self._lock:
            ks = list(self._kept)
            if not ks:
                return None
            i = bisect_left(ks, k)
            nearest = min(ks[max(i - 1, 0) : i + 1], key=lambda n: abs(n - k))
            return (nearest, *self._kept[nearest])

    def keep_ends(self) -> None:
        """Give memory back: only the first and the last stay."""
        with self._lock:
            ks = list(self._kept)
            self._kept = {k: self._kept[k] for k in (*ks[:1], *ks[-1:])}
