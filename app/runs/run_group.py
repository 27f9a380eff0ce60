"""The part of the worker that touches the engine; imported in its thread only."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.background import Mailbox
from app.runs.events import PREVIEW, DisplayRequest, RunFailed, RunFinished, RunRequest, RunStarted
from app.runs.kept import keep_pictures, snapshots_of
from app.runs.snapshots import Snapshots
from app.tasks import details_of, sentence_of
from engine.files.kept_result import KeptResult
from engine.files.record_words import prior_words, scan_words
from engine.files.run_library import RunLibrary
from engine.runs.frames import PLANES, SPECTRA, frame_of, pictures_of, plane_unit, scalars_of
from engine.runs.prepare import Prepared, make_run, prepare, resume_run
from engine.runs.preview import previews
from engine.runs.run import Run
from engine.runs.verdicts import CLASSICAL, doubts_prior
from engine.solvers.iteration import Iteration
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, as_user_error
from engine.spec.job import Job
from engine.spec.numbers import as_float

log = logging.getLogger("app")

# A little less than the screen's 33 ms: at every drain there is a fresh frame, and no more.
FRAME_SECONDS = 0.025
# Jobs that agree in these are the same problem; in the first two, the same files.
SHARED_DATA = ("input", "options")
SHARED_PROBLEM = (*SHARED_DATA, "slices", "acquisition", "seed", "prior", "device")


@dataclass(frozen=True)
class Screen:
    """Where the pictures go: ``shown`` tells what is looked at now."""

    mailbox: Mailbox
    shown: Callable[[], DisplayRequest]
    snapshot_bytes: int
    run_library: RunLibrary | None = None


class LiveRun:
    """One run of a group: its iterations, and what the screen gets of them."""

    def __init__(self, request: RunRequest, prepared: Prepared, run: Run, screen: Screen) -> None:
        self.request, self.prepared, self.run = request, prepared, run
        self.screen, self.mailbox = screen, screen.mailbox
        self.steps = iter(run)
        self.snapshots = Snapshots(screen.snapshot_bytes)
        self._frame: Any = None  # the newest that was shown
        self._sample = 0
        self._listed = False
        self._step_seconds = 0.0
        self._shown_at = -float("inf")
        self._shown: tuple[Any, ...] = ()

    def announce(self) -> None:
        problem, job = self.prepared.problem, self.run.record.job
        reference = problem.reference
        self.mailbox.post(
            RunStarted(
                run_id=self.request.run_id,
                label=self.run.solver.label,
                job=job,
                modality=problem.modality,
                unit=plane_unit(problem, "image"),
                slices=tuple(problem.slices),
                pixel_mm=problem.pixel_mm,
                reference=None if reference is None else pictures_of(problem, reference),
                warnings=self.prepared.warnings,
                snapshots=self.snapshots,
                scan=scan_words(self.run.record.operator),
                prior=prior_words(self.run.record.prior),
            )
        )
        for entry in self.run.record.history:  # of a run that goes on from its checkpoint
            self.mailbox.add_scalars(self.request.run_id, recorded_scalars(entry))

    def show_preview(self) -> None:
        """A quick image to look at until the run's own is better; it changes nothing of the run."""
        if self.run.record.history or self.run.control.paused:
            return
        try:
            for preview in previews(self.prepared):
                self.mailbox.put_frame(f"{PREVIEW}{self.request.run_id}", preview)
                if self.run.control.ending:
                    return
        except Exception as error:  # the run itself will say what is wrong, if anything is
            log.info("No preview: %s.", type(error).__name__)

    def advance(self) -> bool:
        """One iteration; False when the run has ended, well or not."""
        began = time.perf_counter()
        try:
            iteration = next(self.steps, None)
            self._step_seconds = time.perf_counter() - began
            if iteration is not None:
                self._take(iteration)
                return True
            self._finished()
        except Exception as error:
            self._failed(error)
        return False

    def end(self, control: RunControl) -> None:
        """Let the engine close the run, so that its record says how it ended."""
        own = self.run.control
        (own.leave if control.leaving else own.cancel if control.cancelled else own.finish)()
        while self.advance():
            pass

    def _take(self, iteration: Iteration) -> None:
        if not self._listed:
            self._listed = True  # from now on it has a record
            self._list()
        images = pictures_of(self.prepared.problem, iteration.image)
        self.snapshots.add(iteration.k, iteration.sigma, images)
        sample = min(self.screen.shown().sample, len(images) - 1)
        values = scalars_of(iteration, sample)
        values |= {"K": iteration.K, "seconds_step": self._step_seconds}
        self.mailbox.add_scalars(self.request.run_id, values)
        late = time.monotonic() - self._shown_at >= FRAME_SECONDS
        if late or not self.mailbox.has_frame(self.request.run_id):
            self.show()

    def show(self, everything: bool = False) -> None:
        """Leave a frame of the newest iteration, unless just this one was left before."""
        iteration, shown = self.run.last, self.screen.shown()
        if iteration is None:
            return
        wanted = {*PLANES, *SPECTRA} if everything else set(shown.wanted)
        asked = (iteration.k, frozenset(wanted), shown.sample)
        if asked == self._shown:
            return
        problem = self.prepared.problem
        sample = min(shown.sample, len(iteration.image) - 1)
        self._frame, self._sample = frame_of(problem, iteration, wanted, sample), sample
        self.mailbox.put_frame(self.request.run_id, self._frame)
        self._shown, self._shown_at = asked, time.monotonic()

    def _list(self) -> None:
        """In the library's index; what goes wrong there costs no run."""
        if self.screen.run_library is not None:
            with contextlib.suppress(sqlite3.Error):
                self.screen.run_library.refresh(self.request.run_id)

    def _keep(self, images: np.ndarray | None) -> None:
        """In the library; a full disk costs what can be seen again, never the result itself."""
        path, problem = self.request.record_path, self.prepared.problem
        if self.screen.run_library is None or path is None:
            return
        try:
            if images is not None:
                keep_pictures(
                    *(path, images, self.snapshots, self._frame),
                    *(problem.slices, problem.modality, problem.pixel_mm, self._sample),
                )
        except Exception as error:
            log.warning("The pictures of a run could not be kept: %s.", type(error).__name__)
        self._list()

    def _finished(self) -> None:
        self.show(everything=True)
        found = self.run.record.verdicts
        self.mailbox.post(
            RunFinished(
                self.request.run_id,
                self.run.status,
                **self._outcome(),
                verdicts=dict(found),
                compare_with=CLASSICAL if doubts_prior(found) else "",
            )
        )

    def _failed(self, error: Exception) -> None:
        with contextlib.suppress(Exception):  # the first error is the one to tell
            self.steps.close()  # type: ignore[attr-defined]
            self.show(everything=True)
        self.mailbox.post(failure(self.request.run_id, error, **self._outcome()))

    def _outcome(self) -> dict[str, Any]:
        image, record = self.run.image, self.run.record
        images: np.ndarray | None = None
        if image is not None:
            images = pictures_of(self.prepared.problem, image)
        self._keep(images)
        return {
            "images": images,
            "metrics": dict(next(iter(record.metrics.values()), {})),
            "seconds": record.timings.get("total", 0.0),
            "record_path": self.request.record_path,
        }


def run_group(requests: Sequence[RunRequest], control: RunControl, screen: Screen) -> None:
    """Prepare all, then one iteration of each in turn until every run has ended."""
    live = _prepared_runs(requests, control, screen)
    for run in live:
        run.announce()

    def show_all() -> None:
        for run in live:
            run.show()

    control.before_waiting = show_all
    if not control.paused:  # images without a prior are there at once
        live = [run for run in live if run.prepared.prior is not None or run.advance()]
    for run in live:
        run.show_preview()
    while live and control.wait():
        live = [run for run in live if run.advance()]
    for run in live:
        run.end(control)


def _prepared_runs(
    requests: Sequence[RunRequest], control: RunControl, screen: Screen
) -> list[LiveRun]:
    """A run that cannot be prepared says so and leaves the others alone."""
    live: list[LiveRun] = []
    first: tuple[Job, Prepared] | None = None
    for request in requests:
        if control.cancelled:
            screen.mailbox.post(RunFinished(request.run_id, "cancelled", None))
            continue
        try:
            if screen.run_library is not None:
                screen.run_library.begin(request.run_id)
            if request.resume and request.record_path is not None:
                live.append(_resumed(request, request.record_path, screen))
                continue
            job = Job.from_dict(request.job)
            dataset = problem = None
            if first and _agree(job, first[0], SHARED_DATA):
                dataset = first[1].dataset
            if first and _agree(job, first[0], SHARED_PROBLEM):
                problem = first[1].problem
            prepared = prepare(job, dataset, problem)
            first = first or (job, prepared)
            run = make_run(prepared, request.record_path)
            live.append(LiveRun(request, prepared, run, screen))
        except Exception as error:
            if screen.run_library is not None:
                screen.run_library.clear(request.run_id)
            screen.mailbox.post(failure(request.run_id, error))
    return live


def _resumed(request: RunRequest, path: Path, screen: Screen) -> LiveRun:
    """With the pictures of its first part, if it had time to keep them."""
    run = LiveRun(request, *resume_run(path, own=True), screen)
    place = KeptResult.path_beside(path)
    with contextlib.suppress(DualscopeError):
        run.snapshots = snapshots_of(KeptResult.read(place), before=len(run.run.record.history))
    place.unlink(missing_ok=True)  # it is of an earlier state
    return run


def _agree(a: Job, b: Job, names: tuple[str, ...]) -> bool:
    return all(getattr(a, name) == getattr(b, name) for name in names)


def recorded_scalars(entry: dict[str, Any]) -> dict[str, float]:
    """A line of a record's history as the curves take it; the first slice of several."""
    values: dict[str, float] = {}
    for name, value in entry.items():
        if name == "seconds" and isinstance(value, dict):
            values |= {f"seconds_{part}": as_float(spent) for part, spent in value.items()}
        else:
            number = value[0] if isinstance(value, list) and value else value
            values[name] = as_float(number)
    return values


def failure(run_id: str, error: Exception, **outcome: Any) -> RunFailed:
    """An exception as one sentence a person can use, with the traceback as details."""
    expected = isinstance(as_user_error(error), DualscopeError)
    return RunFailed(run_id, sentence_of(error), details_of(error), expected, **outcome)
