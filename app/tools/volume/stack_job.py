"""A stack slice by slice, the one nearest to what is looked at first.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

from app.background import STEP, Ended, Mailbox, Step
from app.forms.labels import on_screen
from app.runs.stack import LiveSlice, StackImages
from app.tasks import sentence_of
from app.tools.volume.job import export_volume
from app.tools.volume.model import ExportRequest
from app.tools.volume.stack_model import Focus, SliceDone, StackEnded, StackRequest, StackStarted
from engine.physics.device import choose_device
from engine.runs.frames import plane_unit
from engine.solvers.catalogue import find_solver
from engine.spec.control import RunControl
from engine.spec.job import Job
from engine.workflows.volume import reconstruct
from engine.workflows.volume.assemble import physical_slice
from engine.workflows.volume.batches import Batch, SliceContext
from engine.workflows.volume.compute import SliceResult
from engine.workflows.volume.compute import Step as EngineStep
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.plan import VolumePlan, make_plan
from engine.workflows.volume.reconstruct import VolumeRun

SERIES = "series"  # below the folder of the slices
LIVE_SECONDS = 0.05  # between two pictures of a slice that is being computed
LIVE = "live "


def run_stack(asked: StackRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """Every slice is stored at once; a later request of the same goes on where this stopped."""
    parts: list[StackPart] = []
    failed = ""
    with contextlib.ExitStack() as closing:
        try:
            for run_id, values in asked.jobs:
                if control.cancelled:
                    break
                shared = parts[0].bench if parts else None
                part = StackPart(run_id, Job.from_dict(values), asked, control, mailbox, shared)
                closing.enter_context(part.folder)
                parts.append(part)
                part.announce()
            for part in parts:
                part.take_stored()
            _compute(parts, asked.focus, control, mailbox)
            for part in parts:
                part.write_series()
        except Exception as error:
            failed = sentence_of(error)
            raise
        finally:
            known = {part.run_id: part for part in parts}
            for run_id, _ in asked.jobs:
                mailbox.post(_ending(run_id, known.get(run_id), failed))
    done = all(part.folder.complete for part in parts) and not control.cancelled
    return Ended("done" if done else "cancelled")


def _ending(run_id: str, part: StackPart | None, failed: str) -> StackEnded:
    if part is None:
        return StackEnded(run_id, "failed" if failed else "cancelled", failed)
    if part.folder.complete:
        return StackEnded(run_id, "done", series=part.stack.series)
    return StackEnded(run_id, "failed" if failed else "cancelled", failed)


def _compute(parts: list[StackPart], focus: Focus, control: RunControl, mailbox: Mailbox) -> None:
    """One slice of one method at a time: where two have a slice to do, the first listed."""
    began, total = time.monotonic(), sum(len(part.plan.numbers) for part in parts)
    stored = sum(len(part.folder.stored) for part in parts)

    def tell(part: StackPart, words: str, share: float) -> None:
        done = sum(len(one.folder.stored) for one in parts) + share
        spent, made = time.monotonic() - began, done - stored
        left = spent / made * (total - done) if made > 0 else None
        mailbox.put_frame(STEP, Step(f"{part.label}, {words}", done / total, left))

    for part in parts:
        part.tell = tell
    while control.wait() and (waiting := [part for part in parts if not part.folder.complete]):
        min(waiting, key=lambda part: part.nearest(focus)).advance()


class StackPart:
    """One method's stack."""

    def __init__(
        self,
        run_id: str,
        job: Job,
        asked: StackRequest,
        control: RunControl,
        mailbox: Mailbox,
        shared: SliceContext | None,
    ) -> None:
        self.run_id, self.asked, self.control, self.mailbox = run_id, asked, control, mailbox
        opened = SliceContext(job, shared.dataset if shared else None)
        # One by one on a processor: the next slice is then always the one that is looked at.
        alone = choose_device(job.device).type == "cpu" and not job.settings.get("couple_z")
        self.plan = make_plan(job, 1 if alone else None, None, None, opened)
        self.bench = SliceContext(self.plan.job, opened.dataset, opened.prior)
        self.job = {**self.plan.job.to_dict(), "device": job.device}
        self.label = find_solver(job.solver).label
        path = folder_of(asked.root, asked.name, self.plan)
        self.folder = VolumeFolder.create(path, self.plan)
        height, width = self.plan.image_shape[1:]
        self.stack = StackImages(self.plan.numbers, (height, width), path)
        self.run = VolumeRun(self.folder, self.bench, control, self._urgency)
        self._events: Iterator[reconstruct.Event] = iter(self.run)
        self._batch: tuple[int, ...] = ()
        self._shown_at = -float("inf")
        self.tell = lambda part, words, share: None

    def announce(self) -> None:
        prepared = self.bench.prepared(self.plan.numbers[:1])
        self.mailbox.post(
            StackStarted(
                run_id=self.run_id,
                label=f"{self.label}, stack",
                job=self.job,
                modality=self.plan.modality,
                unit=plane_unit(prepared.problem, "image"),
                slices=self.plan.numbers,
                pixel_mm=prepared.problem.pixel_mm,
                stack=self.stack,
                warnings=tuple(map(on_screen, prepared.warnings)),
            )
        )

    def _urgency(self, batch: Batch) -> float:
        return min(abs(number - self.asked.focus.slice) for number in batch.kept)

    def nearest(self, focus: Focus) -> float:
        return min(self._urgency(batch) for batch in self.folder.pending())

    def take_stored(self) -> None:
        """What an earlier start has left."""
        here = self.asked.focus.slice
        for number in sorted(self.folder.stored, key=lambda number: abs(number - here)):
            if self.control.cancelled:
                return
            self._keep(self.folder.read(number), fresh=False)

    def advance(self) -> None:
        """The next batch, to its end."""
        for event in self._events:
            if isinstance(event, reconstruct.Begun):
                self._batch = event.numbers
                self.tell(self, _named(event.numbers), 0.0)
            elif isinstance(event, EngineStep):
                self._show(event)
            elif isinstance(event, reconstruct.Stored):
                self._keep(event.result, fresh=True)
                if event.result.number == self._batch[-1]:
                    return
            else:
                return

    def _show(self, step: EngineStep) -> None:
        words = f"{_named(step.numbers)}, iteration {step.k} of {step.K}"
        self.tell(self, words, len(step.numbers) * step.k / step.K)
        here = self.asked.focus.slice
        late = time.monotonic() - self._shown_at >= LIVE_SECONDS
        if step.images is not None and here in step.numbers and late:
            live = LiveSlice(here, step.k, step.K, step.images(here))
            self.mailbox.put_frame(f"{LIVE}{self.run_id}", live)
            self._shown_at = time.monotonic()

    def _keep(self, result: SliceResult, fresh: bool) -> None:
        self.stack.put(result.number, physical_slice(result, result.image))
        self.stack.nfe = result.nfe
        done = SliceDone(self.run_id, result.number, dict(result.metrics), result.seconds, fresh)
        self.mailbox.post(done)

    def write_series(self) -> None:
        """The finished stack as DICOM, to be opened like any other series."""
        if not self.folder.complete or self.control.cancelled:
            return
        place = self.folder.path / SERIES
        if not place.exists():
            words = f"Writing {self.label} as a series …"
            self.mailbox.put_frame(STEP, Step(words, 1.0))
            export_volume(
                ExportRequest(
                    volume=self.folder.path,
                    folder=str(self.folder.path),
                    name=SERIES,
                    window=self.asked.window,
                    dataset=self.bench.dataset,
                ),
                self.control,
                Mailbox(),
            )
        if place.exists():
            self.stack.series = place


def folder_of(root: Path, name: str, plan: VolumePlan) -> Path:
    """The same plan finds its slices again; another, or another version, has its own folder."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", f"{name} {plan.job.solver}").strip("-").lower()[:40]
    facts = json.dumps(plan.to_dict(), sort_keys=True, default=str).encode()
    root.mkdir(parents=True, exist_ok=True)
    return root / f"{plain.strip('-')}-{hashlib.sha256(facts).hexdigest()[:12]}"


def _named(numbers: tuple[int, ...]) -> str:
    """Counted from 1, as everywhere on the screen."""
    first, last = numbers[0] + 1, numbers[-1] + 1
    return f"slice {first}" if first == last else f"slices {first} to {last}"
