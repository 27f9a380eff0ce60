"""The buttons of whatever computes: pause, step, finish, cancel."""

from __future__ import annotations

import threading


class RunControl:
    """Buttons for a run, safe to press from any thread."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._go.set()
        self._single_step = False
        self.cancelled = self.finishing = False

    def pause(self) -> None:
        self._go.clear()

    def resume(self) -> None:
        self._single_step = False
        self._go.set()

    def step(self) -> None:
        """While paused: let one more iteration happen."""
        self._single_step = True
        self._go.set()

    def finish(self) -> None:
        """Stop after the current iteration and keep its image as the result."""
        self.finishing = True
        self._go.set()

    def cancel(self) -> None:
        """Stop after the current iteration; the run counts as cancelled."""
        self.cancelled = True
        self._go.set()

    @property
    def paused(self) -> bool:
        return not self._go.is_set()

    def wait(self) -> bool:
        """Wait while paused; whether to go on."""
        self._go.wait()
        if self._single_step:
            self._single_step = False
            self._go.clear()
        return not (self.cancelled or self.finishing)
