"""A connection to a scheduler, as a run uses it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from distributed import Client
from tornado.ioloop import IOLoop

from engine.spec.errors import RequestError
from engine.workflows.cluster.compute_targets import CHECK_EVERY
from engine.workflows.cluster.own_pickles import PLAIN

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
