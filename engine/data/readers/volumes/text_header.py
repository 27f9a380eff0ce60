"""What the readers of text headers (NRRD, MetaImage) share: numbers out of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.spec.errors import RequestError

MAX_HEADER_BYTES = 1 << 20


def whole_numbers(path: Path, name: str, words: Sequence[str], count: int | None) -> list[int]:
    try:
        numbers = [int(word) for word in words if len(word) < 20]
    except ValueError:
        numbers = []
    if not numbers or len(numbers) != len(words) or (count and len(numbers) != count):
        raise damaged(path, name)
    return numbers


def numbers(path: Path, name: str, words: Sequence[str], count: int) -> list[float]:
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count or not all(math.isfinite(value) for value in values):
        raise damaged(path, name)
    return values


def spacing_only(steps: Sequence[float]) -> np.ndarray:
    """An affine of unknown orientation."""
    full = [*(abs(step) for step in steps), 1.0, 1.0, 1.0][:3]
    return np.diag([*full, 1.0])


def damaged(path: Path, name: str) -> RequestError:
    return RequestError(f"{path}: the entry '{name}' of its header is missing or cannot be used.")
