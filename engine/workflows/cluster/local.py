"""Workers on this computer, which end when we do, or those of a scheduler somebody has started."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import torch
from distributed import Nanny, Scheduler, Security, SpecCluster

from engine.files.atomic import ROOM_LOCK, abandoned, lock_file
from engine.spec.errors import DualscopeError, RequestError, shown
from engine.workflows.cluster.compute_targets import ClusterAddress, LocalWorkers
from engine.workflows.cluster.connection import Site, connected, end_offload, own_loop, quiet
from engine.workflows.cluster.local_worker import LocalWorker
from engine.workflows.cluster.own_pickles import only_own_pickles

SCRATCH = "dualscope-workers-"
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows ends a process at once by either
HERE, ANY_PORT = "127.0.0.1", "127.0.0.1:0"
# of the machine, not of a task: a task sets its threads itself
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextlib.contextmanager
def local_site(where: LocalWorkers) -> Iterator[Site]:
    if where.dashboard and importlib.util.find_spec("bokeh") is None:
        raise RequestError("⟦dashboard⟧ needs the package bokeh: install it with pip.")
    with (
        quiet(pages=where.dashboard),
        only_own_pickles(),
        scratch_folder() as folder,
        dask.config.set({"temporary-directory": folder}),
        _same_environment(),
        own_loop() as loop,
        _started(where, loop) as cluster,
        connected(cluster, loop, security=cluster.security) as client,
    ):
        dashboard = client.dashboard_link if where.dashboard else None
        yield Site(client, local=True, dashboard=dashboard, end=lambda a: _end(cluster, a))


@contextlib.contextmanager
def _started(where: LocalWorkers, loop: Any) -> Iterator[SpecCluster]:
    security = Security.temporary()  # a key of this session, never in a file of ours
    shared = {
        "host": HERE,
        "protocol": "tls://",
        "security": security,
        "dashboard_address": ANY_PORT,
    }
    scheduler = {"cls": Scheduler, "options": {**shared, "dashboard": where.dashboard}}
    workers = {
        number: {
            "cls": Nanny,
            "options": {
                **shared,
                "worker_class": LocalWorker,
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


def _end(cluster: SpecCluster, address: str) -> None:
    """Kill a worker that does not answer; its nanny starts another one."""
    for nanny in cluster.workers.values():
        if nanny.worker_address == address and nanny.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, KILL)


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """Of the workers; those that killed processes have left are removed first."""
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        if (left / ROOM_LOCK).exists() and abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as folder,
        (Path(folder) / ROOM_LOCK).open("ab") as lock,
    ):
        lock_file(lock)
        yield folder


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
    return {**ENVIRONMENT, **own}


@contextlib.contextmanager
def remote_site(where: ClusterAddress) -> Iterator[Site]:
    with (
        quiet(),
        only_own_pickles(),
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
    return shown(link)[:300] if link else None
