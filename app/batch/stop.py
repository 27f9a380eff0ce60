"""The Cancel button of an experiment, safe to press from any thread at any time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.runs.run import RunControl


class Stop:
    """Takes the press before the engine is imported, and hands it on once there is a control."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pressed = False
        self._control: RunControl | None = None

    def press(self) -> None:
        with self._lock:
            self._pressed = True
            if self._control is not None:
                self._control.cancel()

    def attach(self, control: RunControl) -> None:
        with self._lock:
            self._control = control
            if self._pressed:
                control.cancel()
