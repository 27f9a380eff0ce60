"""A run's numbers as columns that grow without being copied at every point."""

from __future__ import annotations

import numpy as np


class History:
    """Named float columns of equal length; a number that is missing is NaN."""

    def __init__(self) -> None:
        self._columns: dict[str, np.ndarray] = {}
        self._length = 0
        self._room = 64

    def __len__(self) -> int:
        return self._length

    def append(self, values: dict[str, float]) -> None:
        if self._length == self._room:
            self._room *= 2
            for name, old in self._columns.items():
                self._columns[name] = self._blank()
                self._columns[name][: self._length] = old[: self._length]
        for name, value in values.items():
            if name not in self._columns:
                self._columns[name] = self._blank()
            self._columns[name][self._length] = value
        self._length += 1

    def _blank(self) -> np.ndarray:
        return np.full(self._room, np.nan)

    def names(self) -> list[str]:
        return list(self._columns)

    def column(self, name: str) -> np.ndarray:
        """The points so far: a view that later points do not change."""
        if name not in self._columns:
            return np.full(self._length, np.nan)
        return self._columns[name][: self._length]

    def last(self, name: str) -> float | None:
        if not self._length or name not in self._columns:
            return None
        value = float(self._columns[name][self._length - 1])
        return None if np.isnan(value) else value

    def at(self, key: str, value: float, name: str) -> float | None:
        """``name`` of the point whose ``key`` is ``value``."""
        found = self.column(name)[self.column(key) == value]
        return float(found[-1]) if len(found) and not np.isnan(found[-1]) else None

    def total(self, name: str) -> float | None:
        """The sum so far, None when there is no such number."""
        if not self._length or name not in self._columns:
            return None
        return float(np.nansum(self.column(name)))
