"""What the worker leaves for the screen: the latest picture, every number, rare events.

A queued signal per iteration would flood the event loop of a fast solver; here the worker
overwrites, and the screen takes what is there when it is ready to draw.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Mail:
    """Everything since the last drain; ``frames`` holds only the newest one of each run."""

    events: list[Any] = field(default_factory=list)
    scalars: list[tuple[str, dict[str, float]]] = field(default_factory=list)
    frames: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.events or self.scalars or self.frames)


class Mailbox:
    """One slot per run for its newest frame, and lists that grow until drained."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mail = Mail()

    def put_frame(self, run_id: str, frame: Any) -> None:
        with self._lock:
            self._mail.frames[run_id] = frame

    def add_scalars(self, run_id: str, values: dict[str, float]) -> None:
        with self._lock:
            self._mail.scalars.append((run_id, values))

    def post(self, event: Any) -> None:
        with self._lock:
            self._mail.events.append(event)

    def has_frame(self, run_id: str) -> bool:
        """Whether the newest frame still waits to be drawn."""
        with self._lock:
            return run_id in self._mail.frames

    def drain(self) -> Mail:
        with self._lock:
            mail, self._mail = self._mail, Mail()
        return mail
