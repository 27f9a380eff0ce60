"""Measures the window: ``python -m app.bench STARTED FOLDER ITERATIONS`` prints a JSON object.

``STARTED`` is the time at which the process was asked for, so that a cold start is counted
from its very beginning; ``FOLDER`` takes the files that are needed on the way.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil
from PySide6.QtCore import QObject, QTimer, Slot

PATIENCE_S: Final = 600.0


def main(started: float, folder: Path, iterations: int) -> dict[str, float | None]:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # alike with and without a display
    import qasync
    from PySide6.QtWidgets import QApplication

    from app import bench_images
    from app.shell.settings import AppSettings
    from app.tasks import Tasks
    from app.theme import Theme
    from app.window import MainWindow

    app = QApplication(sys.argv[:1])
    app.setQuitOnLastWindowClosed(False)
    tasks = Tasks(qasync.QEventLoop(app))
    settings = AppSettings(tasks=tasks)
    window = MainWindow(tasks, settings, Theme(app, "dark"), folder / "runs")
    window.show()
    app.processEvents()
    found: dict[str, float | None] = {"first paint s": time.time() - started}
    found["first paint, computing s"] = time.process_time()
    flags: set[str] = set()
    window.ready.connect(lambda: flags.add("ready"))
    window.gone.connect(lambda: flags.add("gone"))
    window.load_engine()
    _until(lambda: "ready" in flags)
    found["ready s"] = time.time() - started
    found["ready, computing s"] = time.process_time()
    found["memory after the start MB"] = memory_mb()
    found["open 512 x 512 s"] = _open(window, str(_picture(folder)), {"unit": "hu"})
    found["open CT demo s"] = _open(window, "demo:ct")
    found |= _run(window, iterations)
    found["memory after the run MB"] = memory_mb()
    _open(window, str(bench_images.series(folder)), {"unit": "hu"})
    found["scroll 1/s"] = bench_images.scroll(window, _until)
    found["slab ms"] = bench_images.slab_ms()
    window.close()
    _until(lambda: "gone" in flags)
    tasks.close()
    return found


def _until(condition: Callable[[], bool]) -> None:
    """Let the window live until ``condition`` holds."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop, poll = QEventLoop(), QTimer()
    poll.timeout.connect(lambda: loop.quit() if condition() else None)
    poll.start(5)
    QTimer.singleShot(int(1e3 * PATIENCE_S), loop, loop.quit)
    loop.exec()
    poll.stop()
    if not condition():
        raise TimeoutError("The window did not do what it was asked for.")


def _picture(folder: Path) -> Path:
    import numpy as np

    path = folder / "picture.npy"
    rows, columns = np.mgrid[-1:1:512j, -1:1:512j]
    np.save(path, np.where(rows**2 + columns**2 < 0.8, 40.0, -1000.0).astype(np.float32))
    return path


def _open(window: Any, text: str, options: dict[str, Any] | None = None) -> float:
    """Seconds until the picture is there."""
    began, before = time.perf_counter(), window.setup.data
    window.data.open(text, options)
    _until(
        lambda: window.setup.data is not before and window.grid.pane("reference").image is not None
    )
    return time.perf_counter() - began


def _run(window: Any, iterations: int) -> dict[str, float | None]:
    """A run that is faster than the screen, with all curves shown."""

    frames: list[float] = []
    window.runs.frame.connect(lambda *_: frames.append(time.perf_counter()))
    settings = {"nfe": iterations, "cg_iterations": 1}
    job = {"solver": "dc-pnpdp", "settings": settings, "prior": "gaussian", "device": "cpu"}
    beat = Heartbeat(window)
    beat.start()
    window.start_runs([job])
    _until(lambda: window.runs.state == "idle")
    beat.stop()
    spent = frames[-1] - frames[0]
    return {
        "iterations per s": iterations / spent,
        "frames per s": (len(frames) - 1) / spent,
        "longest gap ms": 1e3 * beat.longest,
        "longest gap, computing ms": 1e3 * beat.busiest,
        "GUI load %": 100 * beat.load,
    }


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


def memory_mb() -> float:
    """What this process holds in memory now."""
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
