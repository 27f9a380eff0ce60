"""What is written, and by which writer."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from engine.data.atomic import write_bytes_atomic
from engine.data.dataset import Dataset
from engine.data.record import RunRecord
from engine.data.writers.window import default_window, window_to_bytes
from engine.errors import RequestError
from engine.physics.fourier import to_complex
from engine.problem import Problem


@dataclass(frozen=True)
class Result:
    """A reconstruction and all that a file about it may say.

    ``image`` is ``[N, C, H, W]`` in the prior's units; ``dataset`` is what it was made from,
    when there is one, with the placements and headers of its slices; ``window`` is the one the
    person sees, (centre, width).
    """

    problem: Problem
    image: Tensor
    record: RunRecord = field(default_factory=lambda: RunRecord(job={}))
    dataset: Dataset | None = None
    window: tuple[float, float] | None = None
    deidentify: bool = False

    def values(self) -> np.ndarray:
        """float32 ``[N, H, W]``: HU for CT, magnitude in the input's scale for MR."""
        return physical_array(self.problem, self.image)

    def shown_window(self) -> tuple[float, float]:
        return self.window or default_window(self.problem, self.values())


def physical_array(problem: Problem, image: Tensor) -> np.ndarray:
    values = problem.physical(image)
    flat = values[:, 0] if problem.modality == "CT" else to_complex(values).abs()[:, 0]
    return flat.detach().cpu().float().numpy()


def write_npy(path: Path, result: Result) -> None:
    values, stream = result.values(), io.BytesIO()
    np.save(stream, values[0] if len(values) == 1 else values, allow_pickle=False)
    write_bytes_atomic(path, stream.getvalue())


def write_png(path: Path, result: Result) -> None:
    """All slices side by side, through the window."""
    row = np.concatenate(list(result.values()), axis=1)
    stream = io.BytesIO()
    Image.fromarray(window_to_bytes(row, result.shown_window())).save(stream, "PNG")
    write_bytes_atomic(path, stream.getvalue())


WRITERS: dict[str, Callable[[Path, Result], None]] = {".png": write_png, ".npy": write_npy}
OUTPUT_SUFFIXES = tuple(WRITERS)


def suffix_of(path: Path, suffixes: Sequence[str]) -> str | None:
    """The known suffix of a path, the longest one ('.nii.gz' before '.gz')."""
    fitting = [suffix for suffix in suffixes if path.name.lower().endswith(suffix)]
    return max(fitting, key=len) if fitting else None


def check_outputs(
    names: Sequence[str], overwrite: bool, suffixes: Sequence[str] = OUTPUT_SUFFIXES
) -> list[Path]:
    """Refuse before the long work what could not be written after it."""
    paths = [Path(name) for name in names]
    for path in paths:
        if suffix_of(path, suffixes) is None:
            raise RequestError(f"{path}: write one of {', '.join(suffixes)}.")
        if not path.absolute().parent.is_dir():
            raise RequestError(f"{path}: the folder {path.parent} does not exist.")
        if not os.access(path.absolute().parent, os.W_OK):
            raise RequestError(f"{path}: the folder {path.parent} is not writable.")
        if path.is_dir():
            raise RequestError(f"{path} is a folder.")
        if path.exists() and not overwrite:
            raise RequestError(f"{path} exists: add --overwrite to replace it.")
    if len({path.absolute() for path in paths}) < len(paths):
        raise RequestError("The same output is named twice.")
    return paths


def write_outputs(paths: Sequence[Path], result: Result) -> None:
    for path in paths:
        suffix = suffix_of(path, OUTPUT_SUFFIXES)
        assert suffix is not None, "check_outputs comes first"
        WRITERS[suffix](path, result)
