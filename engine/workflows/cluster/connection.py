"""Dask as a run uses it: silent, with settings that suit few, long tasks, and a connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import dask
from distributed import Client, utils
from tornado.ioloop import IOLoop

from engine.spec.errors import RequestError
from engine.workflows.cluster.compute_targets import CHECK_EVERY
from engine.workflows.cluster.own_pickles import PLAIN

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


CONNECT_S = 10.0


@dataclass(frozen=True)
class Site:
    """``local`` workers are ours: they start again by themselves when they die."""

    client: Client
    local: bool
    dashboard: str | None = None
    end: Callable[[str], None] | None = None  # the worker at an address, if it is ours to kill


@dataclass(frozen=True)
class Kept:
    """A place that is open already, for one run after another."""

    site: Site
    check_every: int = CHECK_EVERY

    def open(self) -> contextlib.nullcontext[Site]:
        return contextlib.nullcontext(self.site)


@contextlib.contextmanager
def own_loop() -> Iterator[IOLoop]:
    """An event loop in a thread that ends here; Dask leaves its own when connecting fails."""
    made: Future[tuple[IOLoop, asyncio.Event]] = Future()

    async def turn() -> None:
        stop = asyncio.Event()
        made.set_result((IOLoop.current(), stop))
        await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(turn()), name="cluster", daemon=True)
    thread.start()
    loop, stop = made.result()
    try:
        yield loop
    finally:
        loop.add_callback(stop.set)
        thread.join(10)


class _Client(Client):
    """Tidies up after itself when it cannot connect; Dask's would try to when it is collected."""

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            super().__init__(*args, **options)
        except BaseException:
            with contextlib.suppress(Exception):
                self.close(timeout=5)
            raise


@contextlib.contextmanager
def connected(address: Any, loop: IOLoop, **options: Any) -> Iterator[Client]:
    """A client that is not Dask's default one, and is closed in the end."""
    try:
        client = _Client(
            address,
            loop=loop,
            set_as_default=False,
            timeout=CONNECT_S,
            deserializers=PLAIN,
            **options,
        )
        for topic in ("print", "warn"):  # what a worker says there would go to our terminal
            client.unsubscribe_topic(topic)
    except Exception as error:  # whatever listens there need not speak Dask's language
        raise RequestError(
            f"No Dask scheduler answers at {address} ({type(error).__name__}): are its TLS "
            "settings and its version of Dask those of this computer?"
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # the other end may be gone
            client.close(timeout=5)
