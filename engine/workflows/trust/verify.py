"""A recorded run made again and compared with what its record and checkpoint hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.export.outputs import physical_array
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.physics.device import available_devices
from engine.runs.prepare import versions
from engine.runs.rerun import Tick, iterations_of, prepare_again, run_again, threads
from engine.runs.run import Run, image_sha256
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError

# On another kind of device a result may differ by this share of the prior's unit: 1 HU of 1000.
TOLERANCE_SHARE = 1e-3
NORMS = ("residual_x", "residual_z", "gap", "dual")
NAMES = {"dualscope": "Dualscope", "python": "Python", "torch": "torch", "numpy": "NumPy"}


@dataclass(frozen=True)
class Verification:
    """``same`` bits; ``largest`` and ``rms`` differences in ``unit`` when both images are there."""

    same: bool
    other_device: bool
    tolerance: float
    unit: str
    sentences: tuple[str, ...]
    largest: float | None = None
    rms: float | None = None
    history: float = 0.0  # largest relative difference of a norm

    @property
    def passed(self) -> bool:
        near = self.largest is not None and self.largest <= self.tolerance
        return self.same or (self.other_device and near)


def verify(
    path: Path,
    control: RunControl,
    input: str | None = None,
    device: str | None = None,
    tick: Tick | None = None,
) -> Verification | None:
    """None when cancelled. By default on the kind of device of the record, if it is here."""
    record = RunRecord.read(path)
    stored = _checkpoint(path)
    interrupted = record.status == "running" and stored is not None
    until = stored.k if interrupted and stored else iterations_of(record, path)
    kind = record.device.split(":")[0]
    if device is None and kind in available_devices():
        device = kind
    elif device is None:
        device = "auto"
    with threads(record.threads):
        prepared = prepare_again(record, path, input, device)
        run = run_again(prepared, until, control, tick)
    return None if run is None else _compare(record, stored, run, until)


def _checkpoint(path: Path) -> Checkpoint | None:
    """What lies beside the record; a damaged one is as good as none."""
    beside = Checkpoint.path_beside(path)
    try:
        return Checkpoint.read(beside) if beside.exists() else None
    except RequestError:
        return None


def _compare(record: RunRecord, stored: Checkpoint | None, run: Run, until: int) -> Verification:
    image, here = run.image, run.problem.measurement.device.type
    if image is None:
        raise DualscopeError("The run gave no image.")
    recorded = record.result_sha256
    old = stored.image if stored is not None and _belongs(stored, recorded, until, image) else None
    history = history_distance(record.history[:until], run.record.history[:until])
    if recorded:
        same = image_sha256(image) == recorded
    elif old is not None:
        same = torch.equal(old, image.cpu())
    else:
        same = history == 0.0
    unit = "HU" if run.problem.modality == "CT" else "of the input's scale"
    largest, rms = _distance(run, old, image) if old is not None else (None, None)
    other = record.device.split(":")[0] != here
    tolerance = TOLERANCE_SHARE * run.problem.intensity.scale
    sentences = [_outcome(same, recorded, old is not None, largest, rms, unit, history)]
    if other:
        sentences.append(_device_sentence(record.device, here, same, largest, tolerance, unit))
    sentences += _changed_versions(record)
    if not same and not record.threads and not other:
        sentences.append("The number of threads was not recorded, and another gives other bits.")
    return Verification(same, other, tolerance, unit, tuple(sentences), largest, rms, history)


def _belongs(stored: Checkpoint, recorded: str, until: int, image: Tensor) -> bool:
    if stored.k != until or stored.image.shape != image.shape:
        return False
    return not recorded or image_sha256(stored.image) == recorded


def _distance(run: Run, old: Tensor, new: Tensor) -> tuple[float, float]:
    before, now = (physical_array(run.problem, i.to(new.device)) for i in (old, new))
    gap = now.astype("float64") - before
    return float(abs(gap).max()), float((gap**2).mean() ** 0.5)


def history_distance(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> float:
    """The largest relative difference of a norm in any iteration; infinite if one is missing."""
    if len(before) != len(now):
        return math.inf
    worst = 0.0
    for old, new in zip(before, now, strict=True):
        for name in NORMS:
            a, b = (
                value if isinstance(value, list) else [value]
                for value in (old.get(name), new[name])
            )
            if len(a) != len(b) or not all(isinstance(v, int | float) for v in a):
                return math.inf
            worst = max([worst, *(_relative(p, q) for p, q in zip(a, b, strict=True))])
    return worst


def _relative(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b), 1e-300) if a != b else 0.0


def _outcome(
    same: bool,
    recorded: str,
    has_image: bool,
    largest: float | None,
    rms: float | None,
    unit: str,
    history: float,
) -> str:
    if same and not recorded and not has_image:
        return (
            "The history matches to the last digit; this record keeps neither the image nor its "
            "hash, so that nothing more can be compared."
        )
    if same:
        return "The bits match."
    if largest is not None and rms is not None:
        if largest == 0:
            return f"The images look the same, but their bits differ ({unit})."
        return f"Differs by at most {largest:.3g} {unit} (RMS {rms:.3g} {unit})."
    start = (
        "The bits differ, and the image is no longer beside the record; the norms of its history"
    )
    if math.isinf(history):
        return f"{start} are not those of this run."
    return f"{start} differ by up to {history:.2g}, relative."


def _device_sentence(
    before: str, now: str, same: bool, largest: float | None, tolerance: float, unit: str
) -> str:
    start = f"Recorded on {before}, made again on {now}"
    if same:
        return f"{start}."
    if largest is not None and largest <= tolerance:
        return f"{start}: within the tolerance of {tolerance:.3g} {unit} between devices."
    return (
        f"{start}, where a seed gives other random numbers: a method that draws noise then differs "
        "as from seed to seed; compare with the spread of dualscope trust."
    )


def _changed_versions(record: RunRecord) -> list[str]:
    now = versions()
    changed = [
        f"{NAMES.get(name, name)} {record.versions[name]} then, {now[name]} now"
        for name in now
        if name in record.versions and record.versions[name] != now[name]
    ]
    return [f"Versions differ: {'; '.join(changed)}."] if changed else []
