"""``python -m soak.window HOME INPUTS SECONDS SEED``: writes HOME/report.json again and again."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from engine.files.atomic import write_bytes_atomic
from soak.loop import Loop, Task


def main(arguments: Sequence[str]) -> int:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # alike with and without a display
    from PySide6.QtCore import QSize
    from PySide6.QtWidgets import QApplication

    from app.tour.fixture import Stage
    from app.tour.user_input import wait
    from soak.window.session import Session, watched

    parent = os.getppid()
    home, inputs, random = Path(arguments[0]), Path(arguments[1]), Random(int(arguments[3]))

    def windows() -> dict[str, float]:
        return {"top-level widgets": len(QApplication.topLevelWidgets())}

    def save(loop: Loop) -> None:
        loop.stopped = loop.stopped or os.getppid() != parent  # whom it reports to was killed
        write_bytes_atomic(home / "report.json", json.dumps(loop.report(), indent=1).encode())

    with Stage(QSize(1280, 800), home) as stage:
        ready: list[bool] = []
        stage.window.ready.connect(lambda: ready.append(True))
        wait(lambda: ready, "the engine is loaded")
        session = Session(stage.window, home, inputs, random)
        loop = Loop(tasks_of(session), random, float(arguments[2]), home, save, windows)

        def stop(number: int, frame: object) -> None:
            loop.stopped = True

        signal.signal(signal.SIGTERM, stop)
        with watched(session.trouble):
            loop.run()
    return 0


def tasks_of(session: object) -> list[Task]:
    from soak.window import mishaps, work
    from soak.window.session import Session

    assert isinstance(session, Session)
    acts = (
        (work.open_data, 5),
        (work.run, 6),
        (work.press_buttons, 4),
        (work.look, 5),
        (work.dialogs, 2),
        (work.theme, 1),
        (work.export, 4),
        (work.workspace, 2),
        (work.experiment, 0.5),
        (mishaps.broken_data, 3),
        (mishaps.data_taken, 2),
        (mishaps.failing_export, 2),
        (mishaps.broken_record, 2),
        (mishaps.broken_workspace, 2),
        (mishaps.broken_preset, 1),
    )
    return [
        Task(f"window: {act.__name__.replace('_', ' ')}", weight, partial(session.turn, act))
        for act, weight in acts
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
