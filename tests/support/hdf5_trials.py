"""The trials of HDF5 files, all from one small process that forks: a new Python costs far more.

A fork has the limits of `engine.data.readers.hdf5.trial`; only its death is a bad sign, as there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from engine.data.readers.hdf5 import trial as hdf5_trial

ROOT = Path(__file__).resolve().parents[2]


class Trials:
    """Stands for `hdf5_trial.launch`; its process starts with the first file."""

    def __init__(self, cpu_seconds: int = hdf5_trial.CPU_SECONDS) -> None:
        self.cpu_seconds = cpu_seconds
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def __call__(self, path: str) -> str:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, __file__, str(self.cpu_seconds)],
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(json.dumps(path), file=self._process.stdin, flush=True)
            return "" if json.loads(self._process.stdout.readline()) == 0 else "reading it fails"

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


def serve(cpu_seconds: int) -> None:
    hdf5_trial.CPU_SECONDS = cpu_seconds
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = hdf5_trial.main(json.loads(line))
            except Exception:
                code = 0
            finally:
                os._exit(code)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
