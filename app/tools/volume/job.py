"""A volume by the engine's own parts.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.background import STEP, TABLE, Begun, Ended, Mailbox, Step, Table
from app.export.exporting import Cancelled, write_staged
from app.export.staging import staging
from app.forms.labels import on_screen
from app.tools.volume.model import (
    COMPUTING,
    STORED,
    WAITING,
    WORKER_WORDS,
    ExportRequest,
    VolumeRequest,
    VolumeTable,
)
from app.tools.volume.source import figures_of, own_job
from engine.export.dicom_deidentify import UidMap
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, marked
from engine.workflows.cluster.compute_targets import LocalWorkers
from engine.workflows.volume import reconstruct
from engine.workflows.volume.assemble import Volume, mapped_result, run_record
from engine.workflows.volume.batches import SliceContext
from engine.workflows.volume.compute import SliceResult
from engine.workflows.volume.compute import Step as EngineStep
from engine.workflows.volume.folder import VolumeFolder, stored_plan
from engine.workflows.volume.plan import make_plan
from engine.workflows.volume.reconstruct import Event, VolumeRun

HEADINGS = ("slice", "status", "PSNR dB", "SSIM", "seconds", "residual")
WORKER_HEADINGS = ("worker", "state", "slices", "memory", "note")
STATUS = 1
EMPTY = ("", "", "", "")
UNMEASURED = "Stopped: all slices are stored; Start measures them."
MEASURING = "All slices are stored; measuring along the three axes …"


def run_volume(asked: VolumeRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """As ``dualscope reconstruct --volume`` does it: what an earlier start has stored is kept."""
    assert asked.job is not None  # or it would have a fault
    path, where, job = Path(asked.folder).absolute(), asked.where, asked.job
    opened = SliceContext(job)
    stored = stored_plan(path)
    threads = where.threads if isinstance(where, LocalWorkers) and stored is None else None
    plan = make_plan(job, None, threads, stored, opened)
    bench = SliceContext(plan.job, opened.dataset, opened.prior)
    if control.cancelled:
        return Ended("cancelled", path)
    with VolumeFolder.create(path, plan) as folder:
        warnings = bench.prepared(plan.numbers[:1]).warnings
        mailbox.post(Begun(len(plan.numbers), len(folder.stored), tuple(map(on_screen, warnings))))
        if where is None:
            run = VolumeRun(folder, bench, control)
        else:
            from engine.workflows.cluster.run import ClusterRun

            run = ClusterRun(folder, where, bench, control)
        report = Report(run, mailbox)
        try:
            for event in run:
                report.take(event)
        except DualscopeError as error:
            raise DualscopeError(f"{marked(error)} {_kept(folder)}") from error
        report.tell()
        if run.status != "done":
            return Ended("cancelled", path, sentence=f"Stopped: {_kept(folder)}")
        mailbox.put_frame(STEP, Step(MEASURING, 1.0))
        if not _measured(folder, control):
            return Ended("cancelled", path, sentence=UNMEASURED)
    return Ended("done", path, sentence=f"Done: all {len(plan.numbers)} slices are stored.")


def _measured(folder: VolumeFolder, control: RunControl) -> bool:
    def before_plane() -> None:
        if control.cancelled:
            raise Cancelled

    try:
        Volume(folder).write_facts(before_plane)
    except Cancelled:
        return False
    return True


def _kept(folder: VolumeFolder) -> str:
    return (
        f"{len(folder.stored)} of {len(folder.plan.numbers)} slices are stored, "
        "and Start goes on from there."
    )


class Report:
    """Turns a run's events into the table, the progress and the workers of the page."""

    def __init__(self, run: VolumeRun, mailbox: Mailbox) -> None:
        self.run, self.mailbox = run, mailbox
        numbers, stored = run.plan.numbers, run.folder.stored
        self.rows = {n: (str(n + 1), WAITING, *EMPTY) for n in numbers}
        for number in stored:
            self._store(run.folder.read(number))
        self.workers: dict[str, tuple[str, ...]] = {}
        self._lost: Counter[str] = Counter()  # workers by name
        self._before, self._done, self._total = len(stored), len(stored), len(numbers)
        self._shares: dict[int, float] = {}  # of slices in hand
        self._began = time.monotonic()
        self.tell()

    def take(self, event: Event) -> None:
        if isinstance(event, EngineStep):
            self._shares.update(dict.fromkeys(event.numbers, event.k / event.K))
            self._progress(f"{_named(event.numbers)}, iteration {event.k} of {event.K}")
            return
        if isinstance(event, reconstruct.Begun):
            self._mark(event.numbers, COMPUTING)
            self._progress(_named(event.numbers))
        elif isinstance(event, reconstruct.Halved):
            self._mark(event.numbers, WAITING)
            self._progress(f"Memory ran out: {_named(event.numbers).lower()} in two parts")
        elif isinstance(event, reconstruct.Stored):
            self._shares.pop(event.result.number, None)
            self._done = event.done
            self._store(event.result)
        else:
            self._worker(event)
        self.tell()

    def tell(self) -> None:
        dashboard = str(getattr(self.run, "dashboard", None) or "")
        rows = tuple(self.workers.values())
        self.mailbox.put_frame(
            TABLE,
            VolumeTable(
                HEADINGS,
                tuple(self.rows.values()),
                frozenset({STATUS}),
                folder=str(self.run.folder.path),
                stored=self._done,
                workers=Table(WORKER_HEADINGS, rows, frozenset({0, 1, 4})),
                dashboard=dashboard if urlsplit(dashboard).scheme in ("http", "https") else "",
            ),
        )

    def _mark(self, numbers: tuple[int, ...], status: str) -> None:
        for number in numbers:
            if self.rows[number][STATUS] != STORED:  # a batch may be half done
                self.rows[number] = (str(number + 1), status, *EMPTY)

    def _store(self, result: SliceResult) -> None:
        metrics = result.metrics
        psnr, ssim = (metrics.get(name) for name in ("psnr", "ssim"))
        self.rows[result.number] = (
            str(result.number + 1),
            STORED,
            "" if psnr is None else f"{psnr:.2f}",
            "" if ssim is None else f"{ssim:.4f}",
            f"{result.seconds:.1f}",
            f"{result.residual:.4g}",
        )

    def _worker(self, state: reconstruct.WorkerState) -> None:
        words, name, note = WORKER_WORDS.get(state.state, state.state), state.name, state.note
        if state.state == "lost":
            self._lost[name] += 1
        elif self._lost[name]:
            note = note or f"restarted {self._lost[name]} ×"
        memory = f"{state.memory_bytes / 1e6:.0f} MB" if state.memory_bytes else ""
        self.workers[name] = (name, words, str(state.slices), memory, note)

    def _progress(self, words: str) -> None:
        done = self._done + sum(self._shares.values())
        gained, spent = done - self._before, time.monotonic() - self._began
        left = spent / gained * (self._total - done) if gained > 0 else None
        self.mailbox.put_frame(STEP, Step(words, done / self._total, left))


def _named(numbers: tuple[int, ...]) -> str:
    """Counted from 1, as everywhere on the screen."""
    first, last = numbers[0] + 1, numbers[-1] + 1
    return f"Slice {first}" if first == last else f"Slices {first} to {last}"


def export_volume(asked: ExportRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """All or nothing: the file, or the series, appears when it is complete."""
    final = Path(asked.folder).absolute() / asked.name

    def pause(share: float, words: str) -> None:
        if control.cancelled:
            raise Cancelled
        mailbox.put_frame(STEP, Step(words, share))

    try:
        with staging(asked.overwrite) as stage:
            staged = stage.place(final)
            pause(0.0, "Reading the volume …")
            volume = Volume(VolumeFolder.open(asked.volume))
            bench = _bench(volume, asked)
            pause(SHARE, f"Writing {final.name} …")
            record = run_record(volume, bench, _facts(volume))
            record.outputs = [str(final)]
            result = mapped_result(volume, bench, record, asked.window)
            hidden = asked.deidentify or result.deidentify
            result = dataclasses.replace(result, deidentify=hidden)
            notes = write_staged(staged, final, result, UidMap(), pause, SHARE, 1 - SHARE)
            pause(1.0, "Putting the files in place")
            stage.commit()
    except Cancelled:
        return Ended("cancelled", final.parent, sentence="Cancelled: nothing was written.")
    return Ended("done", final, sentence=" ".join([f"{final.name} was written.", *notes]))


def _bench(volume: Volume, asked: ExportRequest) -> SliceContext:
    """The data of the volume: those that are open, or where the plan says that they are."""
    plan, opened = volume.plan, asked.dataset
    if opened is not None and opened.sha256() == plan.input_sha256:
        return SliceContext(plan.job, opened)
    bench = SliceContext(own_job(plan))
    if bench.dataset.sha256() != plan.input_sha256:
        raise RequestError("The data have changed since this volume was made.")
    return bench


def _facts(volume: Volume) -> dict[str, Any]:
    """As much of the volume's facts as a record takes; nothing is measured again."""
    axes: dict[str, Any] = {}
    figures = figures_of(volume.folder.path)
    if figures is not None and (axial := figures.axes[0]) is not None:
        axes = {"profile": figures.profile, "axial": {"psnr": axial[0], "ssim": axial[1]}}
    return {"seconds": sum(one.seconds for one in volume.slices), "axes": axes}


SHARE = 0.1  # of the bar, for reading
