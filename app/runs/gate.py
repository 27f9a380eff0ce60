"""The buttons of a run, safe to press from any thread at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Gate:
    """Between two iterations the worker passes here: it goes on, waits, or is told to end.

    The engine's RunControl exists only once the engine is imported and the problem is built;
    the gate takes presses from the first moment.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused = False
        self._steps = 0
        self._ending: str | None = None
        self._refresh = False

    def pause(self) -> None:
        with self._changed:
            self._paused, self._steps = True, 0

    def resume(self) -> None:
        with self._changed:
            self._paused, self._steps = False, 0
            self._changed.notify_all()

    def step(self) -> None:
        """One more iteration, then wait; a running run pauses after it."""
        with self._changed:
            self._paused = True
            self._steps += 1
            self._changed.notify_all()

    def end(self, how: str) -> None:
        """'finish' keeps the image, 'cancel' does not count as a result; cancel wins."""
        with self._changed:
            if self._ending != "cancel":
                self._ending = how
            self._changed.notify_all()

    def refresh(self) -> None:
        """Something else is to be shown: a waiting run shows itself again."""
        with self._changed:
            self._refresh = True
            self._changed.notify_all()

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def ending(self) -> str | None:
        return self._ending

    def pass_through(self, before_waiting: Callable[[], None]) -> str | None:
        """Wait while paused; how to end, or None to go on.

        ``before_waiting`` shows where the run stands, and is called without the lock.
        """
        while True:
            with self._changed:
                if self._ending or not self._paused:
                    return self._ending
                if self._steps:
                    self._steps -= 1
                    return None
                self._refresh = False
            before_waiting()
            with self._changed:
                self._changed.wait_for(
                    lambda: self._ending or not self._paused or self._steps or self._refresh
                )
