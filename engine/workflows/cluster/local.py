"""Workers on this computer: processes of ours that end when we do, however that happens."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import dask
import torch
from distributed import Nanny, Scheduler, Security, SpecCluster

from engine.spec.errors import DualscopeError, RequestError
from engine.workflows.cluster.compute_targets import LocalWorkers
from engine.workflows.cluster.connection import Site, connected, own_loop
from engine.workflows.cluster.dask_config import end_offload, quiet
from engine.workflows.cluster.private import SCHEME, SECRET, PrivateWorker, session_secret

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
