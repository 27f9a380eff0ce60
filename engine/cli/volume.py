"""``dualscope reconstruct INPUT --volume FOLDER``: a whole volume, slice by slice."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.cli.options import number, progress_bar
from engine.data.dataset import Dataset
from engine.data.source import parse_slices
from engine.physics.device import choose_device
from engine.solvers.catalogue import find_solver
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, shown
from engine.spec.job import Job
from engine.workflows.cluster.compute_targets import (
    CHECK_EVERY,
    UNENCRYPTED,
    ClusterAddress,
    LocalWorkers,
)
from engine.workflows.volume.assemble import Volume, export
from engine.workflows.volume.batches import SliceContext, fits
from engine.workflows.volume.compute import Step
from engine.workflows.volume.folder import VolumeFolder, stored_plan
from engine.workflows.volume.plan import make_plan
from engine.workflows.volume.reconstruct import Begun, Halved, Stored, VolumeRun, WorkerState

DONE, CANCELLED = 0, 130
PARTS = ".parts"


def add_volume_options(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("volumes")
    how.add_argument(
        "--volume",
        metavar="FOLDER",
        help="Compute slice by slice and keep every finished one in FOLDER; the same command "
        "line again goes on where it stopped.",
    )
    how.add_argument("--batch", metavar="N", help="Slices computed together. Default: automatic.")
    how.add_argument("--threads", metavar="N", help="Of the processor. Default: automatic.")
    add_cluster_options(parser)


def volume_folder(
    options: argparse.Namespace, job: Job, dataset: Dataset, outputs: list[Path]
) -> Path | None:
    """Where to keep the slices; None if they fit into memory and nobody asked for it."""
    if options.volume is not None:
        return Path(options.volume)
    if options.where is not None:
        if not outputs:
            raise RequestError("--workers and --cluster need --volume FOLDER, or an output (-o).")
        return _parts_beside(outputs[0])
    for name in ("batch", "threads"):
        if getattr(options, name) is not None:
            raise RequestError(f"--{name} is for volumes: give --volume FOLDER, too.")
    count = len(parse_slices(job.slices, len(dataset)))
    shape = (1 if dataset.modality == "CT" else 2, *dataset.image_size)
    if options.record or not outputs or fits(count, shape, choose_device(job.device)):
        return None
    _note(f"{count} slices are more than memory holds: they are computed one after another.")
    return _parts_beside(outputs[0])


def _parts_beside(output: Path) -> Path:
    folder = output.with_name(output.name + PARTS)
    _note(f"Finished slices are kept in {folder}; remove it when the outputs are written.")
    return folder


def check_volume_options(options: argparse.Namespace) -> None:
    options.where = where_from(options)
    for name in ("record", "resume"):
        if (options.volume is not None or options.where) and getattr(options, name):
            raise RequestError(f"A volume keeps its own record in its folder: leave --{name}.")


def run_volume(
    options: argparse.Namespace,
    path: Path,
    job: Job,
    dataset: Dataset,
    outputs: list[Path],
    window: tuple[float, float] | None,
    control: RunControl,
) -> int:
    """Compute what the folder lacks, then write the outputs."""
    opened = SliceContext(job, dataset)
    batch, threads = (number(f"--{n}", getattr(options, n), int) for n in ("batch", "threads"))
    stored = stored_plan(path)
    if threads is None and stored is None and isinstance(options.where, LocalWorkers):
        threads = options.where.threads
    plan = make_plan(job, batch, threads, stored, opened)
    bench = SliceContext(plan.job, dataset, opened.prior)
    for warning in bench.prepared(plan.numbers[:1]).warnings:
        print(f"dualscope: warning: {warning}", file=sys.stderr)
    with VolumeFolder.create(path, plan) as folder:
        run = _run(options, folder, bench, control)
        try:
            follow_volume(run, options.quiet)
        except DualscopeError as error:
            kind = RequestError if isinstance(error, RequestError) else DualscopeError
            raise kind(f"{error} {_kept(folder)}") from error
        if run.status == "cancelled":
            print(f"dualscope: cancelled. {shown(_kept(folder))}", file=sys.stderr)
            return CANCELLED
        volume = Volume(folder)
        facts = volume.write_facts()
        for note in export(
            volume, bench, outputs, facts, window, options.overwrite, options.output_unit or "hu"
        ):
            _note(note)
    if not options.quiet:
        summary(find_solver(job.solver).label, facts, outputs)
    return DONE


def _run(
    options: argparse.Namespace, folder: VolumeFolder, bench: SliceContext, control: RunControl
) -> VolumeRun:
    if options.where is None:
        return VolumeRun(folder, bench, control)
    from engine.workflows.cluster.run import ClusterRun

    return ClusterRun(folder, options.where, bench, control)


def follow_volume(run: VolumeRun, quiet: bool = False) -> None:
    """Run to the end, showing the slices done and where the batches in hand are."""
    total, label = len(run.plan.numbers), find_solver(run.plan.job.solver).label
    done = sum(number in run.folder.stored for number in run.plan.numbers)
    with progress_bar(quiet) as bar:
        task = bar.add_task(label, total=total, completed=done, note="")
        shares: dict[int, float] = {}  # of slices in hand
        for event in run:
            if isinstance(event, Begun):
                bar.update(task, note=f"slice {event.numbers[0]}")
            elif isinstance(event, Step):
                shares.update(dict.fromkeys(event.numbers, event.k / event.K))
                note = f"slice {event.numbers[0]}  iteration {event.k} of {event.K}"
                bar.update(task, completed=done + sum(shares.values()), note=note)
            elif isinstance(event, Stored):
                done = event.done
                shares.pop(event.result.number, None)
                bar.update(task, completed=done + sum(shares.values()))
            elif isinstance(event, Halved):
                _note(f"memory ran out with {len(event.numbers)} slices: half as many are tried.")
            elif isinstance(event, WorkerState) and event.state in ("refused", "lost"):
                _note(f"worker {event.name} is {event.state}{event.note and f': {event.note}'}.")


def summary(label: str, facts: dict[str, Any], outputs: list[Path]) -> None:
    axes, count = facts["axes"], len(facts["slices"])
    unit = " HU" if facts["plan"]["modality"] == "CT" else ""
    print(f"{label}; done; {count} slices; {facts['seconds'] / count:.2f} s a slice")
    if "profile" in axes:
        table = Table(title=f"Mean over the planes ({axes['profile']})")
        for heading in ("axis", "planes", "PSNR dB", "SSIM"):
            table.add_column(heading, justify="left" if heading == "axis" else "right")
        for axis in ("axial", "coronal", "sagittal"):
            if axis in axes:
                one = axes[axis]
                table.add_row(axis, str(one["planes"]), f"{one['psnr']:.2f}", f"{one['ssim']:.4f}")
        Console().print(table)
    if axes["flicker"] is not None:
        print(f"flicker along z: {axes['flicker']:.3g}{unit}")
    for path in outputs:
        print(f"  {shown(path)}")


def _kept(folder: VolumeFolder) -> str:
    done, total = len(folder.stored), len(folder.plan.numbers)
    return f"{done} of {total} slices are kept in {folder.path}: the same command goes on."


def _note(text: str) -> None:
    print(f"dualscope: note: {shown(text)}", file=sys.stderr)


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
        help="Use a tcp:// address on another machine: whoever is on the way can read and "
        "change the data and run code on the workers.",
    )
    who.add_argument(
        "--check-every",
        metavar="N",
        help="Compute one slice in N, taken at random, here, too, and drop a worker whose bits "
        f"differ; 0 for none. Default: {CHECK_EVERY}.",
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
    every = number("--check-every", options.check_every, int)
    if every is not None and workers is None and options.cluster is None:
        raise RequestError("--check-every is for --workers and --cluster.")
    every = CHECK_EVERY if every is None else every
    if workers is not None:
        return LocalWorkers(workers, options.dashboard, check_every=every)
    if options.cluster is None:
        return None
    files = (getattr(options, name) for name in TLS)
    paths = (Path(file) if file else None for file in files)
    place = ClusterAddress(options.cluster, *paths, check_every=every)
    if place.exposed and not options.allow_unencrypted:
        raise RequestError(
            f"{place.address}: {UNENCRYPTED}. Use a tls:// address, or --allow-unencrypted."
        )
    place.check_reachable()
    return place
