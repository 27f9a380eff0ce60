"""The four questions asked about one slice of a finished run, answered for a screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from engine.export.outputs import physical_array
from engine.files.record import RunRecord
from engine.physics.problem import Problem
from engine.runs.certificate import Certificate, certify
from engine.runs.frames import frame_of, pictures_in, pictures_of, plane_unit
from engine.runs.prepare import Prepared, prepare
from engine.runs.reopen import Rebuilder, select_slice
from engine.runs.rerun import run_again, threads
from engine.solvers.iteration import Iteration
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, Sentence, marked
from engine.workflows.trust import words
from engine.workflows.trust.assess import noise_weights
from engine.workflows.trust.pictures import FULL_SHARE
from engine.workflows.trust.split import Splitter, Spread

Progress = Callable[[float, str], None]  # the share that is done, and a word about it
OTHER_BITS: Final = (
    "Made again, the run is not bit for bit the one that is shown: this is of the new one."
)


@dataclass(frozen=True)
class OneSlice:
    """A finished run as if it had been made of this slice alone."""

    record: RunRecord
    prepared: Prepared
    image: Tensor  # [1, C, H, W] in the prior's units
    until: int  # the iteration the image is of
    weights: Tensor | None  # of the noise, for the certificate

    @property
    def problem(self) -> Problem:
        return self.prepared.problem


@dataclass(frozen=True)
class Answer:
    """``maps`` are ``[H, W]`` in ``unit``; ``full_scale`` is where colours of the main one end."""

    maps: dict[str, np.ndarray] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    unit: str = ""
    full_scale: float = 0.0
    certificate: Certificate | None = None


def open_slice(record_path: Path, job: dict[str, Any], number: int) -> OneSlice:
    """``job`` knows where the files are now; ``number`` is that of the slice in the data."""
    rebuilt = Rebuilder().rebuild(record_path, job)
    prepared, device = rebuilt.prepared, str(rebuilt.record.job.get("device", "cpu"))
    if device != prepared.job.device:
        asked = dataclasses.replace(prepared.job, device=device)
        prepared = prepare(asked, prepared.dataset, gate=False)
    if number not in prepared.problem.slices:
        raise RequestError(f"This run was not made of slice {number} (counted from 0).")
    index = prepared.problem.slices.index(number)
    here = slice(index, index + 1)
    weights = noise_weights(prepared)
    return OneSlice(
        rebuilt.record,
        dataclasses.replace(prepared, problem=_problem_of(prepared.problem, index)),
        rebuilt.image[here].to(prepared.problem.measurement.device),
        rebuilt.k,
        None if weights is None else weights[here],
    )


def _problem_of(problem: Problem, index: int) -> Problem:
    return dataclasses.replace(
        select_slice(problem, index), operator=problem.operator.of_slice(index)
    )


def split(run: OneSlice, control: RunControl, progress: Progress) -> Answer | None:
    """Measured and guessed part, and the size of the latter; None when cancelled."""

    def between(steps: int) -> bool:
        progress(0.0, f"conjugate gradients, step {steps}")
        return not control.cancelled

    problem = run.problem
    parts = Splitter(problem, run.image, between=between)(run.image)
    if control.cancelled:
        return None
    difference = dataclasses.replace(problem.intensity, offset=0.0)
    guessed = pictures_in(difference, problem.modality, parts.guessed)[0]
    maps = {
        "measured": pictures_of(problem, parts.measured + parts.origin)[0],
        "guessed": guessed,
        "size": np.abs(guessed),
    }
    says = f"{100 * parts.detail[0]:.0f} % of the edges inside the body are guessed."
    return _answer(problem, maps, "size", (says,))


def certificate(run: OneSlice) -> Answer:
    (found,) = certify(run.problem, run.image, run.weights)
    sentences = (words.verdict_sentence, words.parts_sentence, words.worst_sentence)
    return Answer(says=tuple(say(found) for say in sentences), certificate=found)


def spread(
    run: OneSlice, seeds: int, control: RunControl, progress: Progress, below: float | None = None
) -> Answer:
    """The image that is there, then the next seeds.

    Cancelled, or when a seed fails, it keeps those that are done.
    """
    found, problem, first, failed = Spread(), run.problem, run.prepared.job.seed, ""
    found.add(physical_array(problem, run.image)[0])
    with threads(run.record.threads):
        while found.count < seeds and not found.settled(below) and not control.cancelled:
            done = found.count

            def tick(iteration: Iteration, done: int = done) -> None:
                share = (done - 1 + iteration.k / run.until) / max(1, seeds - 1)
                progress(share, f"seed {done + 1} of {seeds}, iteration {iteration.k}")

            try:
                made = run_again(run.prepared, run.until, control, tick, first + done)
            except DualscopeError as error:
                made, failed = None, Sentence(f"Seed {first + done}: {marked(error)}")
            if made is None or made.image is None:
                break
            found.add(physical_array(problem, made.image)[0])
    says = [words.spread_sentence(found.count, seeds, found.settled(below), found.own_error)]
    if failed:
        says.append(failed)
    if found.sd is None:
        return Answer(says=tuple(says))
    if not found.sd.any():
        says.append("All seeds give the same image: this method draws no random numbers.")
    return _answer(problem, {"sd": found.sd.astype(np.float32)}, "sd", tuple(says))


def pull(run: OneSlice, control: RunControl, progress: Progress) -> Answer | None:
    """|x - z| is not kept with a run: it is made again for it. None when cancelled."""

    def tick(iteration: Iteration) -> None:
        progress(iteration.k / run.until, f"making the run again, iteration {iteration.k}")

    with threads(run.record.threads):
        made = run_again(run.prepared, run.until, control, tick)
    if made is None or made.last is None or made.image is None:
        return None
    values = frame_of(run.problem, made.last, {"x - z"}).planes["x - z"]
    return pull_of(values, plane_unit(run.problem, "x - z"), torch.equal(made.image, run.image))


def pull_of(values: np.ndarray, unit: str, same: bool = True) -> Answer:
    """The answer from x - z itself."""
    size = np.abs(values)
    rms, largest = float(np.sqrt(np.mean(size**2))), float(size.max())
    says = f"The pull is {rms:.3g} {unit} RMS and {largest:.3g} {unit} at most."
    return Answer({"pull": size}, (says,) if same else (says, OTHER_BITS), unit, _full_scale(size))


def _answer(
    problem: Problem, maps: dict[str, np.ndarray], main: str, says: tuple[str, ...]
) -> Answer:
    return Answer(maps, says, plane_unit(problem, "image"), _full_scale(maps[main]))


def _full_scale(values: np.ndarray) -> float:
    return max(float(np.quantile(values, FULL_SHARE)), 1e-12)
