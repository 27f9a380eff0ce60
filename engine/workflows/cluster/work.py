"""A worker's side: it keeps the prior, builds the operator and computes batches, one at a time."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from distributed import Worker, get_worker

from engine.data.dataset import Dataset
from engine.physics.device import available_devices
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap
from engine.priors.catalogue import find_prior
from engine.priors.prior import Prior
from engine.priors.safetensors_file import load_prior_file
from engine.runs.prepare import versions
from engine.spec.control import RunControl
from engine.spec.errors import (
    DualscopeError,
    OutOfMemory,
    RequestError,
    as_user_error,
    bug_message,
    marked,
)
from engine.workflows.cluster.answers import (
    ERROR,
    MEMORY,
    REQUEST,
    SLICES,
    pack_answer,
    pack_facts,
)
from engine.workflows.cluster.payload import Parcel
from engine.workflows.volume.batches import SliceContext
from engine.workflows.volume.compute import SliceResult, Step, compute_batch
from engine.workflows.volume.slice_file import pack_slice

TOPIC = "dualscope"
STEP_S = 0.25  # between two reports of a batch
PRIORS_KEPT = 2

_priors: OrderedDict[str, Prior] = OrderedDict()
# the number of threads belongs to a process: two batches would change each other's rounding
_one_at_a_time = threading.Lock()


def handshake(prior: bytes | str, sha256: str, modality: str, device: str) -> bytes:
    """Keep the prior; ``fault`` is why this worker cannot be used."""
    torch.set_num_threads(1)
    fault = ""
    if device not in available_devices():
        fault = f"it has no {device}"
    else:
        try:
            _keep(prior, sha256, modality)
        except RequestError as error:
            fault = f"it cannot use the prior: {error}"
    return pack_facts({"versions": versions(), "fault": fault})


def _keep(prior: bytes | str, sha256: str, modality: str) -> None:
    if sha256 not in _priors:
        made = _from_bytes(prior, sha256) if isinstance(prior, bytes) else None
        made = made or find_prior(str(prior), modality)
        if made.info.sha256 != sha256:
            raise RequestError("its sha256 is another one.")
        _priors[sha256] = made
    _priors.move_to_end(sha256)
    while len(_priors) > PRIORS_KEPT:
        _priors.popitem(last=False)


def _from_bytes(content: bytes, sha256: str) -> Prior:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RequestError("it arrived damaged.")
    with tempfile.TemporaryDirectory(prefix="dualscope-prior-") as folder:
        path = Path(folder) / "prior.safetensors"
        path.write_bytes(content)
        return load_prior_file(path)


def compute(content: bytes) -> bytes:
    """The answer to a parcel; what went wrong comes back as a sentence, not a trace.

    Dask would log a trace, and with it the beginning of the arguments.
    """
    with _one_at_a_time:
        parcel = Parcel.unpack(content)
        kind, parts = _answer(parcel)
        return pack_answer(kind, parts, parcel.key, content)


def _answer(parcel: Parcel) -> tuple[int, list[bytes]]:
    try:
        return SLICES, [pack_slice(result) for result in _results(parcel)]
    except RequestError as error:
        return REQUEST, [marked(error).encode()]
    except Exception as error:
        failure = as_user_error(error)
        if isinstance(failure, OutOfMemory):
            return MEMORY, []
        known = isinstance(failure, DualscopeError)
        return ERROR, [(marked(failure) if known else bug_message(error)).encode()]


def _results(parcel: Parcel) -> list[SliceResult]:
    prior = _priors.get(parcel.prior_sha256)
    if prior is None:  # a worker that has started again under its old address
        raise DualscopeError("The worker has lost the prior.")
    bench = SliceContext(parcel.plan.job, _Sent.of(parcel.problem), prior)
    worker = _worker()
    reports = _Reports(worker, parcel.run)
    results = compute_batch(parcel.plan, parcel.batch, bench, _Wanted(worker), reports)
    return [dataclasses.replace(result, reference=None) for result in results]


class _Sent(Dataset):
    """The slices of one parcel as a dataset."""

    kind: ClassVar[str] = "image"
    sent: Problem

    @classmethod
    def of(cls, problem: Problem) -> _Sent:
        _, height, width = problem.operator.image_shape
        count = len(problem.slices)
        made = cls(problem.modality, "", count, (height, width), problem.pixel_mm, _sha256="")
        made.sent = problem
        return made

    def preview(self, number: int) -> np.ndarray:
        raise NotImplementedError

    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        assert tuple(numbers) == self.sent.slices
        return self.sent


def _worker() -> Worker | None:
    try:
        return get_worker()
    except ValueError:  # called by hand
        return None


class _Wanted(RunControl):
    """Stops between two iterations once the task is cancelled, or its client is gone."""

    def __init__(self, worker: Worker | None) -> None:
        super().__init__()
        self.worker = worker
        self.key: Any = worker.get_current_task() if worker is not None else None

    def wait(self) -> bool:
        if self.worker is not None:
            task = self.worker.state.tasks.get(self.key)
            if task is None or task.state == "cancelled":
                self.cancel()
        return super().wait()


class _Reports:
    """Tells the client how far a batch is, now and then."""

    def __init__(self, worker: Worker | None, run: str) -> None:
        self.worker, self.run = worker, run
        self.told = time.monotonic()

    def __call__(self, step: Step) -> None:
        if self.worker is None or time.monotonic() - self.told < STEP_S:
            return
        self.told = time.monotonic()
        message = {"run": self.run, "numbers": list(step.numbers), "k": step.k, "K": step.K}
        self.worker.log_event(TOPIC, message)
