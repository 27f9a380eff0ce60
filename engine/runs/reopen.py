"""A finished run again, from its record and checkpoint: to export it, or to show it later."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import Tensor

from engine.data.dataset import Dataset
from engine.files.checkpoint import Checkpoint
from engine.files.record import REMOVED, RunRecord
from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap
from engine.runs.frames import pictures_in
from engine.runs.prepare import Prepared, open_dataset, prepare, recorded_job
from engine.spec.errors import RequestError
from engine.spec.job import Job

PLACES = ("input", "options", "prior")  # of a job: where its files are on this machine
OTHER_DATA = "The data have changed since this run was made: bring the old ones back, or run again."
OTHER_PRIOR = "The prior is not the one this run was made with: choose that one and run again."


@dataclass(frozen=True)
class Rebuilt:
    """A record with its files read, its problem built and its image."""

    record: RunRecord
    prepared: Prepared
    image: Tensor  # [B, C, H, W] in the prior's units, on the CPU
    k: int  # the iteration the image is of


class Rebuilder:
    """Rebuilds runs one after the other; those of one session mostly share data and problem."""

    def __init__(self) -> None:
        self._dataset: tuple[tuple[Any, ...], Dataset] | None = None
        self._problem: tuple[tuple[Any, ...], Problem] | None = None

    def rebuild(self, record_path: Path, job: dict[str, Any] | None = None) -> Rebuilt:
        """``job`` knows where the files are now; the record decides everything else."""
        record = RunRecord.read(record_path)
        asked = job_of(record, job)
        checkpoint = Checkpoint.path_beside(record_path)
        if not checkpoint.exists():
            raise RequestError("This run left no image.")
        saved = Checkpoint.read(checkpoint)
        image = saved.image
        files = (asked.input, repr(asked.options))
        if self._dataset is None or self._dataset[0] != files:
            self._dataset, self._problem = (files, open_dataset(asked)), None
        dataset = self._dataset[1]
        if record.input.get("sha256") != dataset.sha256():
            raise RequestError(OTHER_DATA)
        scan = (*files, asked.slices, repr(asked.acquisition), asked.prior, asked.seed)
        known = self._problem[1] if self._problem and self._problem[0] == scan else None
        prepared = prepare(asked, dataset, known, gate=False)
        self._problem = (scan, prepared.problem)
        _check_prior(record, prepared)
        problem = prepared.problem
        if tuple(image.shape) != (len(problem.slices), *problem.operator.image_shape):
            raise RequestError(f"{checkpoint.name} does not belong to its record.")
        return Rebuilt(record, prepared, image, saved.k)


def job_of(record: RunRecord, job: dict[str, Any] | None) -> Job:
    """The record's job, its files where ``job`` says; computed on the CPU, which is always there.

    A job that has the files' names removed can be used only together with one that has them.
    """
    places = {name: value for name, value in (job or {}).items() if name in PLACES}
    asked = recorded_job(record, "The run's record", {**places, "device": "cpu"})
    if asked.input == REMOVED:
        raise RequestError("This run was recorded without naming its data: they cannot be found.")
    return asked


def recorded_intensity(record: RunRecord) -> IntensityMap | None:
    """What the checkpoint's numbers mean, if the record says so (older ones do not)."""
    said = record.input.get("intensity")
    if not isinstance(said, dict) or set(said) != {"kind", "scale", "offset"}:
        return None
    numbers = (said["scale"], said["offset"])
    if not all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers):
        return None
    try:
        return IntensityMap(str(said["kind"]), float(said["scale"]), float(said["offset"]))
    except RequestError:
        return None


def image_alone(
    record_path: Path, job: dict[str, Any] | None = None
) -> tuple[RunRecord, Problem, Tensor] | None:
    """A run whose data are gone: its image, and a problem that knows its units and nothing else.

    None while the data are there, and for old records, which do not say what the numbers mean.
    """
    record = RunRecord.read(record_path)
    place = str((job or record.job).get("input", ""))
    intensity, modality = recorded_intensity(record), record.input.get("modality")
    checkpoint = Checkpoint.path_beside(record_path)
    if place.startswith("demo:") or Path(place).exists() or not checkpoint.exists():
        return None
    if intensity is None or modality not in ("CT", "MR"):
        return None
    image = Checkpoint.read(checkpoint).image
    slices = record.input.get("slices")
    if not isinstance(slices, list) or image.ndim != 4 or len(slices) != len(image):
        return None
    nothing = cast(Operator, None)  # there is no scan any more
    return record, Problem(nothing, image, intensity, modality, slices=tuple(slices)), image


def recorded_pictures(record: RunRecord, record_path: Path) -> np.ndarray | None:
    """The run's images ``[B, H, W]`` without its data; None when too little is left for it."""
    intensity, modality = recorded_intensity(record), record.input.get("modality")
    path = Checkpoint.path_beside(record_path)
    if intensity is None or modality not in ("CT", "MR") or not path.exists():
        return None
    try:
        image = Checkpoint.read(path).image
    except RequestError:
        return None
    channels = 1 if modality == "CT" else 2
    if image.ndim != 4 or image.shape[1] != channels or not image.is_floating_point():
        return None
    return pictures_in(intensity, modality, image)


def _check_prior(record: RunRecord, prepared: Prepared) -> None:
    """Another prior may have other units: the numbers of the image would silently be wrong."""
    expected = (record.prior or {}).get("sha256")
    found = prepared.prior.info.sha256 if prepared.prior else None
    if expected != found:
        raise RequestError(OTHER_PRIOR)
    told, now = recorded_intensity(record), prepared.problem.intensity
    if told is None:
        return
    same = told.kind == now.kind and math.isclose(told.scale, now.scale, rel_tol=1e-4)
    if not same or abs(told.offset - now.offset) > 1e-4 * now.scale:
        raise RequestError(OTHER_PRIOR)


def select_slice(problem: Problem, index: int) -> Problem:
    """The problem of one slice; its operator still speaks for all of them."""
    here = slice(index, index + 1)
    noise = problem.noise_sigma
    return dataclasses.replace(
        problem,
        measurement=problem.measurement[here],
        weights=None if problem.weights is None else problem.weights[here],
        reference=None if problem.reference is None else problem.reference[here],
        noise_sigma=noise[here] if isinstance(noise, Tensor) and noise.ndim else noise,
        slices=(problem.slices[index],),
    )
