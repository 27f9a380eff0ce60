"""Whether a worker is still at it: how long its batches take, and when it was heard of last."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

FACTOR = 3.0  # as long as the slowest of a worker's last batches, slice for slice
LEAST_S = 10.0  # but never less for a batch: a busy machine
FIRST_S = 60.0  # nor for the first one, for which a system matrix may have to be built
STRANGERS_FACTOR = 10.0  # a worker whose own pace is not known yet may be a slower machine
HEARTBEAT_S = 30.0  # Dask's workers are heard of every few seconds, whatever they compute
SILENT_S = 120.0  # without an iteration, while nobody's pace is known
LATEST = 8  # batches


class Pulse:
    def __init__(self) -> None:
        self._paces: deque[float] = deque(maxlen=LATEST)  # seconds a slice
        self._last_seen: Any = None
        self._beat = self._since = self._stepped = time.monotonic()
        self._k = 0

    @property
    def pace(self) -> float | None:
        return max(self._paces, default=None)

    def waited(self) -> float:
        """Since it began what it does now."""
        return time.monotonic() - self._since

    def beat(self, last_seen: Any) -> None:
        """What the scheduler says of its heartbeat; clocks may differ, so a change counts."""
        if last_seen != self._last_seen:
            self._last_seen, self._beat = last_seen, time.monotonic()

    def begin(self) -> None:
        self._since = self._stepped = time.monotonic()
        self._k = 0

    def step(self, k: int) -> None:
        if k > self._k:
            self._k, self._stepped = k, time.monotonic()

    def finish(self, slices: int) -> None:
        """A batch is done, and the one behind it begins."""
        self._paces.append(self.waited() / slices)
        self.begin()

    def overdue(self, slices: int, slowest: float | None, alike: bool) -> str:
        """Why nothing is to be expected any more of a batch; empty if something is.

        ``slowest`` is the pace of the slowest worker, by which those that are ``alike`` and have
        none of their own are measured.
        """
        now = time.monotonic()
        if now - self._beat > HEARTBEAT_S:
            return f"the worker has not been heard of for {now - self._beat:.0f} s"
        if self.pace is not None:
            limit = max(LEAST_S, FACTOR * self.pace * slices)
        elif slowest is not None:
            limit = max(FIRST_S, (FACTOR if alike else STRANGERS_FACTOR) * slowest * slices)
        elif now - self._stepped > SILENT_S:
            return f"no iteration for {now - self._stepped:.0f} s"
        else:
            return ""
        return f"not done after {now - self._since:.0f} s" if now - self._since > limit else ""
