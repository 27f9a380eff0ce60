"""A worker process of ours. Ctrl-C is for the client, not for it; it dies with the client."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from typing import Any

from distributed import Worker

PR_SET_PDEATHSIG = 1  # linux/prctl.h


class LocalWorker(Worker):
    def __init__(self, *args: Any, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.platform == "linux":  # Dask's own way needs a worker that is not frozen
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        super().__init__(*args, **options)
