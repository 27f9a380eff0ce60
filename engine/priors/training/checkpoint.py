"""The state of a training run in one file, written whole, read without running any code."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from engine.files.atomic import write_atomic
from engine.files.path_safety import check_regular
from engine.spec.errors import RequestError

FILE_NAME = "checkpoint.pt"
BEFORE_DECAY = "before-decay.pt"  # to continue from: a decayed network has settled


@dataclass
class History:
    """What the run reports: mean losses, validations, and losses not yet averaged."""

    losses: list[tuple[int, float]] = field(default_factory=list)
    validations: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    pending: list[float] = field(default_factory=list)

    def add(self, step: int, loss: float, every: int) -> None:
        self.pending.append(loss)
        if step % every == 0:
            self.losses.append((step, sum(self.pending) / len(self.pending)))
            self.pending = []

    def to_json(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def from_json(cls, text: str) -> History:
        values = json.loads(text)
        return cls(
            losses=[(int(step), float(loss)) for step, loss in values["losses"]],
            validations=[(int(step), dict(psnr)) for step, psnr in values["validations"]],
            pending=[float(loss) for loss in values["pending"]],
        )


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    write_atomic(path, lambda stream: torch.save(state, stream))


def read_checkpoint(folder: Path) -> dict[str, Any] | None:
    """The state last written to ``folder``, or None; only tensors and plain values are read."""
    path = folder / FILE_NAME
    if not path.exists():
        return None
    check_regular(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader lets out whatever a damaged file makes of it
        raise RequestError(f"{path} is not a training checkpoint: remove it to begin.") from error
    if not isinstance(state, dict) or "settings" not in state or "step" not in state:
        raise RequestError(f"{path} is not a training checkpoint: remove it to begin.")
    return state
