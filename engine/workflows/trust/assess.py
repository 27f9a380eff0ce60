"""All that can be said about how far to trust a recorded result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from engine.export.outputs import physical_array
from engine.physics.fourier import to_complex
from engine.runs.certificate import Certificate, certify
from engine.runs.frames import frame_of
from engine.runs.prepare import Prepared, prepare
from engine.runs.rerun import run_again
from engine.runs.run import Run
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, Sentence, marked
from engine.workflows.trust import words
from engine.workflows.trust.split import Split, Splitter, Spread

# (seeds done so far, share of the present one, a word about it)
Progress = Callable[[int, float, str], None]


@dataclass(frozen=True)
class Assessment:
    """Maps are ``[B, H, W]`` in HU or the input's scale."""

    run: Run  # of the record's own seed
    image: np.ndarray
    split: Split
    spread: Spread
    settled: bool
    asked: int
    certificates: list[Certificate]
    pull: np.ndarray
    failed: str = ""  # why a later seed ended the spread before its time

    @property
    def complete(self) -> bool:
        return self.settled or self.spread.count >= self.asked

    def measured(self) -> np.ndarray:
        """Complex for MR, so that measured and guessed add up to the image."""
        return physical(self.run, self.split.measured + self.split.origin)

    def guessed(self) -> np.ndarray:
        return physical(self.run, self.split.guessed, difference=True)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, each beside its sentences."""
        spread, sd, first = self.spread, self.spread.sd, int(self.run.record.job["seed"])
        numbers: dict[str, Any] = {
            "split": self.split.to_dict() | {"rule": words.SPLIT_RULE},
            "certificate": {
                "slices": [
                    c.to_dict() | {"says": [words.verdict_sentence(c), words.parts_sentence(c)]}
                    for c in self.certificates
                ]
            },
            "spread": {
                "seeds": [first + n for n in range(spread.count)],
                "asked": self.asked,
                "settled": self.settled,
                "failed": self.failed,
                "changes": spread.changes,
                "sd_rms": None if sd is None else float(np.sqrt(np.mean(sd**2))),
                "sd_largest": None if sd is None else float(sd.max()),
                "own_error": spread.own_error,
                "says": self.spread_sentence(),
            },
            "pull": {
                "rms": float(np.sqrt(np.mean(self.pull**2))),
                "largest": float(self.pull.max()),
            },
        }
        for name, said in words.ALL.items():
            numbers[name] |= {"how_to_read": said.how_to_read, "cannot_tell": said.cannot_tell}
        return numbers

    def spread_sentence(self) -> str:
        spread = self.spread
        said = words.spread_sentence(spread.count, self.asked, self.settled, spread.own_error)
        return f"{said} {self.failed}".rstrip()


def assess(
    prepared: Prepared,
    until: int,
    seeds: int,
    control: RunControl,
    below: float | None = None,
    progress: Progress | None = None,
) -> Assessment | None:
    """The record's own seed first, then the next ones on the same measurement.

    Cancelled, or when a later seed fails, it keeps the seeds that are done; None when not even
    the first is.
    """
    spread, first, failed = Spread(), None, ""
    for number in range(seeds):

        def tick(iteration: Any, number: int = number) -> None:
            if progress is not None:
                progress(number, iteration.k / until, f"sigma {iteration.sigma:.3g}")

        try:
            run = run_again(prepared, until, control, tick, prepared.job.seed + number)
        except DualscopeError as error:
            if first is None:
                raise
            run, failed = None, Sentence(f"Seed {prepared.job.seed + number}: {marked(error)}")
        if run is None:
            break
        assert run.image is not None
        first = first or run
        spread.add(physical_array(run.problem, run.image))
        if spread.settled(below):
            break
    if first is None:
        return None
    found = conclude(first, spread, seeds, below, noise_weights(prepared))
    return dataclasses.replace(found, failed=failed)


def conclude(
    run: Run, spread: Spread, asked: int, below: float | None, weights: Tensor | None
) -> Assessment:
    problem, last = run.problem, run.last
    assert run.image is not None
    assert last is not None
    pull = [frame_of(problem, last, {"x - z"}, n).planes["x - z"] for n in range(len(run.image))]
    return Assessment(
        run=run,
        image=physical_array(problem, run.image),
        split=Splitter(problem, run.image)(run.image),
        spread=spread,
        settled=spread.settled(below),
        asked=asked,
        certificates=certify(problem, run.image, weights),
        pull=np.abs(np.stack(pull)),
    )


def noise_weights(prepared: Prepared) -> Tensor | None:
    """Rays of a photon scan differ in noise even when the reconstruction did not weigh them."""
    job, problem = prepared.job, prepared.problem
    if not job.acquisition.get("photons") or problem.weights is not None:
        return problem.weights
    asked = dataclasses.replace(job, acquisition=job.acquisition | {"weighted": True})
    return prepare(asked, prepared.dataset, gate=False).problem.weights


def physical(run: Run, image: Tensor, difference: bool = False) -> np.ndarray:
    """``[B, H, W]``: HU, or complex in the input's scale; a difference has no offset."""
    scaled = image * run.problem.intensity.scale if difference else run.problem.physical(image)
    values = scaled[:, 0] if run.problem.modality == "CT" else to_complex(scaled)[:, 0]
    return values.detach().cpu().numpy()
