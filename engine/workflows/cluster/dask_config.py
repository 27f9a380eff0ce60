"""Dask as a part of this program: silent, and with settings that suit few, long tasks."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
from distributed import utils

# Their messages quote arguments of tasks and traces: nothing of that belongs on a terminal.
LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")
CONFIG: dict[str, Any] = {
    "distributed.admin.large-graph-warning-threshold": "4GB",  # measurements are large
    "distributed.scheduler.work-stealing": False,  # every task has its worker
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,  # nothing of a patient goes to a worker's disk
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.daemon": True,
    # by default a worker that is not back after 15 s, as on a busy machine, is never started again
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.admin.low-level-log-length": 100,  # of a scheduler of ours: its memory stays flat
}
NO_PAGES: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


@contextlib.contextmanager
def quiet(pages: bool = False) -> Iterator[None]:
    """While Dask is in use; ``pages`` are those of a scheduler of ours, such as its dashboard."""
    with silenced(), dask.config.set(CONFIG if pages else CONFIG | NO_PAGES):
        yield


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def end_offload() -> None:
    """End the thread that a scheduler of ours has left in Dask's pool; the next one has its own."""
    used = utils._offload_executor
    utils._offload_executor = ThreadPoolExecutor(1, thread_name_prefix="Dask-Offload")
    used.shutdown()
