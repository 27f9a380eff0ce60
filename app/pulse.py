"""How steady the window is: the longest wait of a person, and the memory it takes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Slot

TICK_MS: Final = 5


class Heartbeat(QObject):
    """Ticks in the GUI thread; a tick that comes late is a stall that a person may feel.

    ``longest`` is what the clock saw, and grows with whatever else the machine does; the time
    the GUI thread itself computed between two ticks, ``busiest``, does not. Both in seconds.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.longest = self.busiest = 0.0
        self._wall = self._cpu = self._wall_sum = self._cpu_sum = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)

    def start(self) -> None:
        self.longest = self.busiest = self._wall_sum = self._cpu_sum = 0.0
        self._wall, self._cpu = time.perf_counter(), time.thread_time()
        self._timer.start()

    def stop(self) -> None:
        self._tick()
        self._timer.stop()

    @property
    def load(self) -> float:
        """The part of the time in which the GUI thread computed."""
        return self._cpu_sum / self._wall_sum if self._wall_sum else 0.0

    @Slot()
    def _tick(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        self._wall_sum += wall - self._wall
        self._cpu_sum += cpu - self._cpu
        self.longest = max(self.longest, wall - self._wall)
        self.busiest = max(self.busiest, cpu - self._cpu)
        self._wall, self._cpu = wall, cpu


def memory_mb() -> float | None:
    """What this process holds in memory now; None where the system does not say."""
    if not sys.platform.startswith("linux"):
        return None
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
