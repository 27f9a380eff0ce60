"""A reconstruction as a generator of Iterations that can be paused, kept, stopped and resumed."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.files.atomic import in_use, remove_partials
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.metrics.profiles import Quick, default_profile, evaluate
from engine.physics.problem import Problem
from engine.physics.random import SOLVER, make_generator
from engine.priors.prior import Prior
from engine.runs.verdicts import SUMMARY, verdicts
from engine.solvers.iteration import Iteration
from engine.solvers.solver import Resume, Solver
from engine.spec.control import RunControl
from engine.spec.errors import (
    DualscopeError,
    RequestError,
    Sentence,
    as_user_error,
    is_out_of_memory,
)
from engine.spec.numbers import as_float
from engine.spec.settings import Settings


class Run:
    """One solver on one problem, with its record and checkpoint.

    Iterate over it to make it happen. ``image`` is always the last good image; ``status``
    becomes 'done', 'finished early', 'cancelled', 'interrupted' (it is to go on another time) or
    'failed'.

    Parameters
    ----------
    record, record_path
        Where to keep the run record; its checkpoint lies beside it.
    checkpoint_seconds : float
        At most this much work is lost when the process is killed.
    """

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        settings: Settings,
        prior: Prior | None = None,
        *,
        seed: int = 0,
        record: RunRecord | None = None,
        record_path: Path | None = None,
        checkpoint_seconds: float = 1.0,
        control: RunControl | None = None,
    ) -> None:
        self.problem, self.solver, self.settings, self.prior = problem, solver, settings, prior
        self.record = record or RunRecord(job={})
        self.record_path, self.checkpoint_seconds = record_path, checkpoint_seconds
        self.control = control or RunControl()
        self.status = "not started"
        self.image: Tensor | None = None
        self.last: Iteration | None = None
        device = problem.measurement.device
        # One generator per slice, so that a slice's result does not depend on its batch.
        self.generators = [make_generator(seed, device, SOLVER + n) for n in problem.slices]
        self._random: list[Tensor] = []  # the generators' states after the last iteration
        self._resume: Resume | None = None
        self._saved_at = -float("inf")
        self._quick: Quick | None = None

    def resume_from(self, checkpoint: Checkpoint) -> None:
        """Continue after the checkpoint's iteration."""
        device, shape = self.problem.measurement.device, self.problem.operator.image_shape
        if tuple(checkpoint.image.shape[1:]) != shape or len(checkpoint.generators) != len(
            self.generators
        ):
            raise RequestError("The checkpoint belongs to another problem: its image differs.")
        if checkpoint.k > len(self.record.history):
            raise RequestError("The checkpoint is newer than its run record.")
        try:
            for generator, saved in zip(self.generators, checkpoint.generators, strict=True):
                generator.set_state(saved)
        except (RuntimeError, TypeError) as error:
            raise RequestError("The checkpoint's random state cannot be used.") from error
        state = {name: value.to(device) for name, value in checkpoint.state.items()}
        self._resume = Resume(checkpoint.k, state)
        self.image = checkpoint.image.to(device)
        del self.record.history[checkpoint.k :]

    def __iter__(self) -> Iterator[Iteration]:
        with in_use(self.record_path) if self.record_path else contextlib.nullcontext():
            yield from self._recorded()

    def _recorded(self) -> Iterator[Iteration]:
        self.status = self.record.status = "running"
        self._seconds = self.record.timings.get("total", 0.0)
        try:
            yield from self._iterations()
        except GeneratorExit:
            self._end("cancelled", "")
            raise
        except Exception as error:
            failure = as_user_error(error)
            known = isinstance(failure, DualscopeError)
            with contextlib.suppress(Exception):  # the first error is the one to tell
                self._end("failed", Sentence(failure) if known else type(error).__name__)
            if failure is not error:
                raise failure from error
            raise

    def _iterations(self) -> Iterator[Iteration]:
        if self.record_path is not None:
            remove_partials(self.record_path)
            remove_partials(Checkpoint.path_beside(self.record_path))
            if self._resume is None:  # an older run's must not be taken for this one's
                Checkpoint.path_beside(self.record_path).unlink(missing_ok=True)
        self._save(None)
        steps = self.solver.iterate(
            self.problem, self.prior, self.settings, self.generators, self._resume
        )
        while self.control.wait():
            with torch.no_grad():  # around the step only: a mode must not leak through a yield
                began = time.perf_counter()
                iteration = self._step(steps)
                self._seconds += time.perf_counter() - began
            if iteration is None:
                self._end("done", "")
                return
            self._take(iteration)
            yield iteration
        self._end(self._stopped(), "")

    def _stopped(self) -> str:
        """How a run ended that was asked to."""
        if self.control.leaving:
            return "interrupted"
        return "cancelled" if self.control.cancelled else "finished early"

    def _step(self, steps: Iterator[Iteration]) -> Iteration | None:
        """The first step of a resumed run tells whether the checkpoint's tensors fit it."""
        try:
            return next(steps, None)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            if self._resume is None or self.last is not None or is_out_of_memory(error):
                raise
            place = self.record_path and Checkpoint.path_beside(self.record_path)
            missing = isinstance(error, KeyError) and error.args
            what = f"lacks 'state.{error.args[0]}'" if missing else "does not fit this run"
            raise RequestError(
                f"{place or 'The checkpoint'} {what}: it is incomplete or another run's. "
                "Without that file the run starts from its beginning."
            ) from error

    def _take(self, iteration: Iteration) -> None:
        problem = self.problem
        if problem.reference is not None:
            if self._quick is None:
                profile = default_profile(problem.modality)
                self._quick = Quick(profile, problem.reference, problem.intensity)
            iteration.metrics = self._quick(iteration.image)
        change = moved(self.image, iteration.image)
        self.last, self.image = iteration, iteration.image
        # now, for a step that fails has drawn some numbers already
        self._random = [generator.get_state() for generator in self.generators]
        self.record.history.append(history_entry(iteration))
        if change is not None:
            self.record.history[-1]["change"] = change
        timings = self.record.timings
        for name, seconds in iteration.seconds.items():
            timings[name] = timings.get(name, 0.0) + seconds
        timings["total"] = self._seconds
        if time.monotonic() - self._saved_at >= self.checkpoint_seconds:
            self._save(iteration)

    def _save(self, iteration: Iteration | None) -> None:
        """Record first, then checkpoint: see engine.files.record."""
        if self.record_path is None:
            return
        self.record.write(self.record_path)
        if iteration is not None:
            checkpoint = Checkpoint(iteration.k, iteration.state, iteration.image, self._random)
            checkpoint.write(Checkpoint.path_beside(self.record_path))
            self._saved_at = time.monotonic()

    def keep(self, record_path: Path) -> None:
        """Record and checkpoint after all, of a run that was made without them."""
        self.record_path = record_path
        self._save(self.last)

    def _end(self, status: str, message: str) -> None:
        self.status = self.record.status = status
        self.record.message = message
        if self.image is not None and status in ("done", "finished early"):
            last = self.record.history[-1] if self.record.history else {}
            told = verdicts(self.problem, self.prior, self.image, as_float(last.get("change")))
            self.record.verdicts = {**told, **self.record.verdicts, **told}
        elif self.last is not None:  # nobody may take it for a result
            at = f"{status.capitalize()} at iteration {self.last.k} of {self.last.K}"
            self.record.verdicts = {SUMMARY: f"{at}: not a finished result."}
        self.record.timings["total"] = self._seconds
        if self.image is not None:
            self.record.result_sha256 = image_sha256(self.image)
            self.record.threads = torch.get_num_threads()
        if self.last is not None and self.last.note:
            self.record.verdicts["convergence"] = self.last.note
        if self.image is not None and self.problem.reference is not None:
            profile = default_profile(self.problem.modality)
            self.record.metrics[profile] = evaluate(
                profile,
                self.image,
                self.problem.reference,
                self.problem.intensity,
                support=self.problem.operator.support(),
            )
        self._save(self.last)


def moved(before: Tensor | None, image: Tensor) -> float | None:
    """RMS difference of two images in the SD of the second; the largest of several slices."""
    if before is None or before.shape != image.shape:
        return None
    sd = image.flatten(1).std(1).clamp_min(1e-12)
    return float(((image - before).flatten(1).square().mean(1).sqrt() / sd).max())


def image_sha256(image: Tensor) -> str:
    """Of ``[B, C, H, W]`` as float32 in the prior's units: whether two results are the same."""
    values = image.detach().cpu().float().contiguous().numpy()
    return hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()


def history_entry(iteration: Iteration) -> dict[str, Any]:
    """One line of the record's history; lists when there are several slices."""
    norms = {
        name: values[0] if len(values) == 1 else values for name, values in iteration.norms.items()
    }
    return {
        "k": iteration.k,
        "sigma": iteration.sigma,
        **norms,
        "nfe": iteration.nfe,
        "seconds": iteration.seconds,
        **iteration.metrics,
    }
