"""Workers on this computer, which end when we do, or those of a scheduler somebody has started.

Dask runs what it is sent, so a scheduler that merely listens on 127.0.0.1 would run the code of
any user of this computer. Here both ends first prove that they know a secret of the session;
whoever does not is cut off before a byte of a message is read. Nothing is encrypted: what passes
through 127.0.0.1 is seen by nobody but the system's administrator.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import importlib.util
import logging
import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import dask
import torch
from distributed import Nanny, Scheduler, Security, SpecCluster, Worker
from distributed.comm import CommClosedError
from distributed.comm.registry import backends
from distributed.comm.tcp import BaseTCPBackend, TCPConnector, TCPListener
from tornado.iostream import IOStream, StreamClosedError

from engine.spec.errors import DualscopeError, RequestError
from engine.workflows.cluster.compute_targets import ClusterAddress, LocalWorkers
from engine.workflows.cluster.connection import Site, connected, end_offload, own_loop, quiet

SCHEME = "private"
SECRET = "DUALSCOPE_SESSION_SECRET"  # the variable through which our own workers learn it
BYTES = 32
PATIENCE_S = 60.0  # a process that is loading a large library answers late

_own = secrets.token_hex(BYTES)


def session_secret() -> str:
    """That of the parent process in a worker, our own in the first one."""
    return os.environ.get(SECRET, _own)


def _proof(role: bytes, nonce: bytes) -> bytes:
    return hmac.digest(session_secret().encode(), role + nonce, hashlib.sha256)


async def _within(work: Any) -> Any:
    return await asyncio.wait_for(work, PATIENCE_S)


class PrivateConnector(TCPConnector):
    prefix = f"{SCHEME}://"

    async def connect(self, *args: Any, **options: Any) -> Any:
        comm = await super().connect(*args, **options)
        stream, mine = comm.stream, secrets.token_bytes(BYTES)
        try:
            theirs = await _within(stream.read_bytes(BYTES))
            await stream.write(_proof(b"connects", theirs) + mine)
            answer = await _within(stream.read_bytes(BYTES))
        except (StreamClosedError, TimeoutError) as error:
            stream.close()
            raise CommClosedError("the other end does not know the session's secret") from error
        if not hmac.compare_digest(answer, _proof(b"listens", mine)):
            stream.close()
            raise CommClosedError("the other end does not know the session's secret")
        return comm


class PrivateListener(TCPListener):
    prefix = f"{SCHEME}://"

    async def _prepare_stream(self, stream: IOStream, address: str) -> IOStream | None:
        mine = secrets.token_bytes(BYTES)
        try:
            await stream.write(mine)
            answer = await _within(stream.read_bytes(2 * BYTES))
            if hmac.compare_digest(answer[:BYTES], _proof(b"connects", mine)):
                await stream.write(_proof(b"listens", answer[BYTES:]))
                return stream
        except (StreamClosedError, TimeoutError):
            pass
        stream.close()
        return None


class PrivateBackend(BaseTCPBackend):
    _connector_class = PrivateConnector
    _listener_class = PrivateListener


class PrivateWorker(Worker):
    """Where it is unpickled this module is imported. Ctrl-C is for the client, not for it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().__init__(*args, **options)


backends[SCHEME] = PrivateBackend()


HERE, ANY_PORT = "127.0.0.1", "127.0.0.1:0"
# of the machine, not of a task: a task sets its threads itself
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextlib.contextmanager
def local_site(where: LocalWorkers) -> Iterator[Site]:
    if where.dashboard and importlib.util.find_spec("bokeh") is None:
        raise RequestError("⟦dashboard⟧ needs the package bokeh: install it with pip.")
    with (
        quiet(pages=where.dashboard),
        tempfile.TemporaryDirectory(
            prefix="dualscope-workers-", ignore_cleanup_errors=True
        ) as folder,
        dask.config.set({"temporary-directory": folder}),
        _same_environment(),
        own_loop() as loop,
        _started(where, loop) as cluster,
        connected(cluster, loop, security=cluster.security) as client,
    ):
        yield Site(client, local=True, dashboard=client.dashboard_link if where.dashboard else None)


@contextlib.contextmanager
def _started(where: LocalWorkers, loop: Any) -> Iterator[SpecCluster]:
    security = Security(require_encryption=False)  # whatever is configured for other clusters
    shared = {
        "host": HERE,
        "protocol": f"{SCHEME}://",
        "security": security,
        "dashboard_address": ANY_PORT,
    }
    scheduler = {"cls": Scheduler, "options": {**shared, "dashboard": where.dashboard}}
    workers = {
        number: {
            "cls": Nanny,
            "options": {
                **shared,
                "worker_class": PrivateWorker,
                "nthreads": 1,
                "memory_limit": 0,
                "silence_logs": logging.CRITICAL,
                "env": environment(number),
            },
        }
        for number in range(where.count)
    }
    try:
        cluster = SpecCluster(
            scheduler=scheduler,
            workers=workers,
            loop=loop,
            security=security,
            silence_logs=False,
            shutdown_on_close=True,
        )
    except Exception as error:
        raise DualscopeError(f"The workers could not be started ({error}).") from error
    try:
        yield cluster
    finally:
        with contextlib.suppress(TimeoutError):  # then they are killed
            cluster.close(timeout=20)
        end_offload()


@contextlib.contextmanager
def _same_environment() -> Iterator[None]:
    """Dask prepares ours for its workers and leaves it so."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def environment(number: int) -> dict[str, str]:
    """Of a worker process; each has one graphics card where there are any."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    own = {"CUDA_VISIBLE_DEVICES": str(number % cards)} if cards else {}
    return {**ENVIRONMENT, **own, SECRET: session_secret()}


@contextlib.contextmanager
def remote_site(where: ClusterAddress) -> Iterator[Site]:
    with (
        quiet(),
        own_loop() as loop,
        connected(where.address, loop, security=security_of(where)) as client,
    ):
        yield Site(client, local=False, dashboard=_dashboard(client))


def security_of(where: ClusterAddress) -> Security:
    """Dask's own settings, and over them the files that were named."""
    named = {
        "tls_ca_file": where.tls_ca,
        "tls_client_cert": where.tls_cert,
        "tls_client_key": where.tls_key,
    }
    files = {name: str(path) for name, path in named.items() if path is not None}
    try:
        encrypted = True if where.address.startswith("tls://") else None
        return Security(require_encryption=encrypted, **files)
    except (ValueError, TypeError) as error:
        raise RequestError(f"Dask's TLS settings cannot be used: {error}.") from error


def _dashboard(client: object) -> str | None:
    """The link, if the scheduler has such a page."""
    try:
        link = client.dashboard_link  # type: ignore[attr-defined]
    except (KeyError, ValueError):
        return None
    return str(link) if link else None
