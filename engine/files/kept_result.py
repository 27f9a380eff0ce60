"""What the window shows of a run that has ended, kept beside its record: to look at it again.

The result itself is exact, and so are the curves. Of the images of past iterations as many are
kept as fit into ``STEPS_BYTES``, spread over the run, in 65,536 steps between their lowest and
highest value: for the eye, not for measurements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import check_whole
from engine.files.run_library_entry import RESULT
from engine.spec.errors import RequestError

STEPS_BYTES: Final = 8 << 20
LEVELS: Final = 65535
Step = tuple[int, float, np.ndarray]  # k, sigma, images [B, H, W]


@dataclass(frozen=True)
class KeptResult:
    """``images`` ``[B, H, W]`` in the units of the screen; ``arrays`` and ``told`` as given."""

    images: np.ndarray
    steps: list[Step] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)  # JSON-able

    @staticmethod
    def path_beside(record: Path) -> Path:
        return record.with_name(record.stem + RESULT)

    def write(self, path: Path) -> None:
        stored = {f"array.{name}": np.ascontiguousarray(a) for name, a in self.arrays.items()}
        stored["images"] = np.ascontiguousarray(self.images, dtype=np.float32)
        marks = []
        for k, sigma, images in spread(self.steps):
            low = float(images.min())
            size = max(float(images.max()) - low, 1e-12)
            levels = np.rint((images.astype(np.float64) - low) * (LEVELS / size))
            stored[f"step.{k}"] = levels.astype(np.uint16)
            marks.append([k, sigma, low, size])
        told = json.dumps({"told": self.told, "steps": marks}, allow_nan=False)
        write_bytes_atomic(path, save_arrays(stored, metadata={"result": told}))

    @classmethod
    def read(cls, path: Path) -> KeptResult:
        try:
            check_whole(path, held=True)
            content = path.read_bytes()
            stored = load_arrays(content)
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            said = json.loads(header["__metadata__"]["result"])
            images = stored.pop("images")
            steps = [
                (int(k), float(sigma), _pictures(stored.pop(f"step.{k}"), images, low, size))
                for k, sigma, low, size in said["steps"]
            ]
            told = dict(said["told"])
        except OSError as error:
            raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
        except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
            raise RequestError(f"{path} is damaged and cannot be shown.") from error
        if images.ndim != 3 or images.dtype != np.float32:
            raise RequestError(f"{path} is damaged and cannot be shown.")
        arrays = {name[6:]: a for name, a in stored.items() if name.startswith("array.")}
        return cls(images, steps, arrays, told)


def _pictures(levels: np.ndarray, like: np.ndarray, low: float, size: float) -> np.ndarray:
    if levels.shape != like.shape:
        raise ValueError("of another size")
    return (levels * np.float32(size / LEVELS) + np.float32(low)).astype(np.float32)


def spread(steps: list[Step]) -> list[Step]:
    """As many as there is room for, evenly over the run; fewer than three are not worth it."""
    if not steps:
        return []
    most = STEPS_BYTES // max(2 * steps[0][2].size, 1)
    if len(steps) <= most:
        return steps
    if most < 3:
        return []
    places = np.unique(np.linspace(0, len(steps) - 1, most).round().astype(int))
    return [steps[place] for place in places]


def finite(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a table that JSON can hold."""
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}
