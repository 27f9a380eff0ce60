"""A scheduler that somebody has started, here or on another machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from distributed import Security

from engine.spec.errors import RequestError, shown
from engine.workflows.cluster.compute_targets import ClusterAddress
from engine.workflows.cluster.connection import Site, connected, own_loop
from engine.workflows.cluster.dask_config import quiet
from engine.workflows.cluster.own_pickles import only_own_pickles


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
