"""A worker process of ours. Ctrl-C is for the client, not for it."""

from __future__ import annotations

import signal
import threading
from typing import Any

from distributed import Worker


class LocalWorker(Worker):
    def __init__(self, *args: Any, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().__init__(*args, **options)
