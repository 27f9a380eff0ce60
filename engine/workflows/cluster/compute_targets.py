"""Where a volume can be computed: by workers on this computer, or by a cluster.

Addresses are looked at here, before Dask is imported: that takes seconds.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import SplitResult, urlsplit

from engine.spec.errors import RequestError

if TYPE_CHECKING:
    from engine.workflows.cluster.connection import Site

SCHEMES = ("tcp", "tls")
MOST_WORKERS = 256
CHECK_EVERY = 50
REACH_S = 5.0
UNENCRYPTED = "patient data would cross the network unencrypted"
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,253}")


class Where(Protocol):
    """What a ``ClusterRun`` asks of a place."""

    @property
    def check_every(self) -> int:
        """One batch in so many, taken at random, is computed here, too; 0 for none."""

    def open(self) -> AbstractContextManager[Site]:
        """Connect; whatever was started for it ends when the context does."""


@dataclass(frozen=True)
class LocalWorkers:
    """``count`` processes on this computer, one graphics card each where there are any."""

    count: int
    dashboard: bool = False
    check_every: int = field(default=CHECK_EVERY, kw_only=True)

    def __post_init__(self) -> None:
        _check(self.check_every)
        if not 1 <= self.count <= MOST_WORKERS:
            raise RequestError(f"⟦workers⟧ must be from 1 to {MOST_WORKERS}, not {self.count}.")

    @property
    def threads(self) -> int:
        """A worker's share of the processor."""
        return max(1, cores() // self.count)

    def open(self) -> AbstractContextManager[Site]:
        from engine.workflows.cluster.local import local_site

        return local_site(self)


@dataclass(frozen=True)
class ClusterAddress:
    """A Dask scheduler that somebody has started; TLS files add to Dask's own settings."""

    address: str
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    check_every: int = field(default=CHECK_EVERY, kw_only=True)

    def __post_init__(self) -> None:
        _check(self.check_every)
        parts = _parts(self.address)
        files = {"ca": self.tls_ca, "cert": self.tls_cert, "key": self.tls_key}
        for name, path in files.items():
            if path is None:
                continue
            if parts.scheme != "tls":
                raise RequestError(f"⟦tls_{name}⟧ is for an address that begins with tls://.")
            if not path.is_file():
                raise RequestError(f"⟦tls_{name}⟧: there is no file {path}.")

    @property
    def host(self) -> str:
        return str(_parts(self.address).hostname)

    @property
    def port(self) -> int:
        return int(_parts(self.address).port or 0)

    @property
    def exposed(self) -> bool:
        """Whether data would leave this computer unencrypted."""
        return _parts(self.address).scheme == "tcp" and not is_here(self.host)

    def open(self) -> AbstractContextManager[Site]:
        self.check_reachable()
        from engine.workflows.cluster.local import remote_site

        return remote_site(self)

    def check_reachable(self) -> None:
        """One sentence soon, where Dask would try for long."""
        try:
            socket.create_connection((self.host, self.port), timeout=REACH_S).close()
        except OSError as error:
            reason = error.strerror or str(error) or "no answer"
            raise RequestError(
                f"Nobody can be reached at {self.address} ({reason.lower()}): "
                "is the scheduler running, and the port open?"
            ) from error


def _check(every: int) -> None:
    if every < 0:
        raise RequestError("⟦check_every⟧ must be 0 (never) or the number of slices per check.")


def _parts(address: str) -> SplitResult:
    """A whole address, or the one sentence that says what is wrong with it."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    named = parts.hostname is not None and _HOST.fullmatch(parts.hostname)
    if parts.scheme not in SCHEMES or not port or not plain or not named:
        raise RequestError(
            f"'{address[:100]}' is not the address of a Dask scheduler: write "
            "tcp://HOST:PORT or tls://HOST:PORT, such as tls://gpu-server:8786."
        )
    return parts


def is_here(host: str) -> bool:
    """Whether a name stands for this computer alone; nobody is asked for it."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def cores() -> int:
    """Those this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
