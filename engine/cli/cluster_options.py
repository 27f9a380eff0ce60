"""``--workers N`` and ``--cluster ADDRESS``: who computes the slices of a volume."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.cli.options import number
from engine.spec.errors import RequestError
from engine.workflows.cluster.places import UNENCRYPTED, ClusterAddress, LocalWorkers

TLS = ("tls_ca", "tls_cert", "tls_key")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    who = parser.add_argument_group("several processes or machines, for volumes")
    who.add_argument(
        "--workers", metavar="N", help="Compute with N processes, one per graphics card."
    )
    who.add_argument(
        "--cluster", metavar="ADDRESS", help="Compute on a Dask cluster: tls://HOST:8786 or tcp://."
    )
    for name, what in zip(TLS, ("authority", "certificate", "key"), strict=True):
        who.add_argument(
            f"--{name.replace('_', '-')}",
            metavar="FILE.pem",
            help=f"The {what} for tls:// addresses. Default: as Dask is configured.",
        )
    who.add_argument(
        "--allow-unencrypted",
        action="store_true",
        help="Use a tcp:// address on another machine without asking.",
    )
    who.add_argument(
        "--dashboard", action="store_true", help="Dask's dashboard for --workers (needs bokeh)."
    )


def where_from(options: argparse.Namespace) -> LocalWorkers | ClusterAddress | None:
    """The place that was asked for; None for this process alone."""
    workers = number("--workers", options.workers, int)
    if workers is not None and options.cluster is not None:
        raise RequestError("Give --workers or --cluster, not both.")
    if options.cluster is None:
        for name in (*TLS, "allow_unencrypted"):
            if getattr(options, name):
                raise RequestError(f"--{name.replace('_', '-')} is for --cluster.")
    if options.dashboard and workers is None:
        raise RequestError("--dashboard is for --workers: a cluster has its own.")
    if workers is not None:
        return LocalWorkers(workers, options.dashboard)
    if options.cluster is None:
        return None
    files = (getattr(options, name) for name in TLS)
    place = ClusterAddress(options.cluster, *(Path(file) if file else None for file in files))
    if place.exposed and not options.allow_unencrypted:
        _confirm(place)
    place.check_reachable()
    return place


def _confirm(place: ClusterAddress) -> None:
    """Ask a person; where there is none, the answer is no."""
    if not sys.stdin.isatty():
        raise RequestError(
            f"{place.address}: {UNENCRYPTED}. Use a tls:// address, or --allow-unencrypted."
        )
    print(f"{place.address}: {UNENCRYPTED}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RequestError("Nothing was sent. Use a tls:// address.")
