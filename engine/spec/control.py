"""The buttons of whatever computes: pause, step, finish, cancel."""

from __future__ import annotations

import threading
from collections.abc import Callable


class RunControl:
    """Buttons for a run, safe to press from any thread and before it has begun.

    ``before_waiting`` shows where a paused run stands, and again whenever `refresh` asks for it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._paused = self._refresh = False
        self._steps = 0
        self.cancelled = self.finishing = self.leaving = False
        self.before_waiting: Callable[[], None] = lambda: None

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

    def finish(self) -> None:
        """Stop after the current iteration and keep its image as the result."""
        with self._changed:
            self.finishing = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """Stop after the current iteration; the run counts as cancelled, whatever else was said."""
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()

    def leave(self) -> None:
        """Stop as `cancel` does, but to go on another time: the run counts as interrupted."""
        with self._changed:
            self.cancelled = self.leaving = True
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
    def ending(self) -> bool:
        return self.cancelled or self.finishing

    def wait(self) -> bool:
        """Wait while paused; whether to go on."""
        while True:
            with self._changed:
                if self.ending or not self._paused:
                    return not self.ending
                if self._steps:
                    self._steps -= 1
                    return True
                self._refresh = False
            self.before_waiting()  # without the lock
            with self._changed:
                self._changed.wait_for(
                    lambda: self.ending or not self._paused or self._steps or self._refresh
                )
