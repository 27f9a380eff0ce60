"""``python -m soak.window.brief DATA FOLDER``: a window with a run in it, to be ended from outside.

FOLDER/recipe holds the run as words for the command line, FOLDER/running the path of its record
as soon as there is something to go on from.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from engine.files.atomic import write_bytes_atomic

NFE = 200
JOB = {
    "solver": "dc-pnpdp",
    "settings": {"nfe": NFE, "cg_iterations": 3},
    "prior": "gaussian",
    "seed": 0,
    "device": "cpu",
}


def main(data: Path, folder: Path) -> int:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QSize

    from app.tour.fixture import Stage
    from app.tour.user_input import wait
    from soak.window.session import HU

    ended: list[bool] = []
    with Stage(QSize(1280, 800), folder) as stage:
        window = stage.window
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.append(True))
        ready: list[bool] = []
        window.ready.connect(lambda: ready.append(True))
        wait(lambda: ready, "the engine is loaded")
        window.data.open(str(data), HU)
        wait(lambda: window.setup.data is not None, "the data open")
        run_id = window.start_runs([JOB])[-1]
        entry = window.store.get(run_id)
        assert entry is not None
        wait(lambda: len(entry.history) > 3, "the run goes on")
        write(folder, run_id, data, window.left.acquisition().value())
        wait(lambda: ended, "the end")
    return 0


def write(folder: Path, run_id: str, data: Path, acquisition: dict[str, object]) -> None:
    (record,) = folder.rglob(f"{run_id}.json")
    words = [str(data), "--unit", "hu", "--pixel-mm", "6", "--nfe", str(NFE)]
    words += ["--cg-iterations", "3", "--prior", "gaussian", "--device", "cpu", "--quiet"]
    for name, value in acquisition.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    write_bytes_atomic(folder / "recipe", "\n".join(words).encode())
    write_bytes_atomic(folder / "running", str(record).encode())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
