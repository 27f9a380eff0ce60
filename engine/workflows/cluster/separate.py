"""Scheduler and workers as processes of their own, each of which can be watched and measured."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from distributed import Security

from engine.spec.errors import DualscopeError
from engine.workflows.cluster.connection import Site, connected, own_loop, quiet
from engine.workflows.cluster.local import ANY_PORT, HERE, environment
from engine.workflows.cluster.own_pickles import only_own_pickles

START_S = 120.0
ENTRY = "import sys; from distributed.cli.dask_{0} import main; sys.exit(main())"


@dataclass(frozen=True)
class Separate:
    """``site`` is open; process numbers are those of the scheduler and of the workers."""

    site: Site
    scheduler: int
    workers: tuple[int, ...]


@contextlib.contextmanager
def separate_processes(workers: int) -> Iterator[Separate]:
    """They talk by TLS with a certificate of this session."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(quiet())
        stack.enter_context(only_own_pickles())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dualscope-bench-"))
        file = Path(folder) / "scheduler.json"
        security = Security.temporary()
        options = ["--scheduler-file", str(file), *_tls_options(security, Path(folder))]
        options += ["--host", HERE, "--protocol", "tls://", "--dashboard-address", ANY_PORT]
        scheduler = stack.enter_context(_process("scheduler", [*options, "--port", "0"], folder, 0))
        _until(file.exists)
        more = [*options, "--nthreads", "1", "--no-nanny", "--local-directory", folder]
        started = [
            stack.enter_context(_process("worker", [*more, "--name", str(number)], folder, number))
            for number in range(workers)
        ]
        loop = stack.enter_context(own_loop())
        address = _address(file)
        client = stack.enter_context(connected(address, loop, security=security))
        client.wait_for_workers(workers, timeout=START_S)
        yield Separate(
            Site(client, local=False), scheduler.pid, tuple(process.pid for process in started)
        )


@contextlib.contextmanager
def _process(
    what: str, options: list[str], folder: str, number: int
) -> Iterator[subprocess.Popen[bytes]]:
    root = str(Path(__file__).resolve().parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-c", ENTRY.format(what), *options],
        env={**os.environ, **environment(number), "PYTHONPATH": paths, "TMPDIR": folder},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tls_options(security: Security, folder: Path) -> list[str]:
    """Certificate and key as files that only this person can read, for programs that want files."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    role = security.get_tls_config_for_role("client")
    for path, what in ((cert, "cert"), (key, "key")):
        path.touch(mode=0o600)
        path.write_text(role[what], encoding="ascii")
    return ["--tls-ca-file", str(cert), "--tls-cert", str(cert), "--tls-key", str(key)]


def _address(file: Path) -> str:
    return str(json.loads(file.read_text(encoding="utf-8"))["address"])


def _until(condition: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > START_S:
            raise DualscopeError("The scheduler could not be started.")
        time.sleep(0.05)
