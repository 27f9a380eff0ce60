"""Writing results, by suffix, each file beside and then renamed."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from engine.data.atomic import write_bytes_atomic
from engine.errors import RequestError
from engine.physics.fourier import to_complex
from engine.problem import Problem

OUTPUT_SUFFIXES = (".png", ".npy")
DEFAULT_CT_WINDOW = (0.0, 1600.0)  # the paper's limited-angle figures, [-800, 800] HU


def check_outputs(
    names: Sequence[str], overwrite: bool, suffixes: tuple[str, ...] = OUTPUT_SUFFIXES
) -> list[Path]:
    """Refuse before the long work what could not be written after it."""
    paths = [Path(name) for name in names]
    for path in paths:
        if path.suffix.lower() not in suffixes:
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


def parse_window(text: str | None) -> tuple[float, float] | None:
    """'40/400' as (centre, width)."""
    if text is None:
        return None
    try:
        centre, width = (float(part) for part in text.split("/"))
        if not width > 0:
            raise ValueError
    except ValueError:
        raise RequestError(f"--window '{text}': give centre/width, such as 40/400.") from None
    return centre, width


def physical_array(problem: Problem, image: Tensor) -> np.ndarray:
    """float32 ``[N, H, W]``: HU for CT, magnitude in the input's scale for MR."""
    values = problem.physical(image)
    flat = values[:, 0] if problem.modality == "CT" else to_complex(values).abs()[:, 0]
    return flat.detach().cpu().float().numpy()


def window_to_bytes(values: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Linear VOI of DICOM: centre and width to 0..255."""
    centre, width = window
    y = (values - (centre - 0.5)) / max(width - 1, 1e-6) + 0.5
    return np.round(255 * np.clip(y, 0, 1)).astype(np.uint8)


def default_window(problem: Problem, values: np.ndarray) -> tuple[float, float]:
    """CT: a fixed one. MR has no absolute scale: the range without its tails."""
    if problem.modality == "CT":
        return DEFAULT_CT_WINDOW
    low, high = np.quantile(values, [0.001, 0.999])
    return linear_window(float(low), float(high))


def linear_window(low: float, high: float) -> tuple[float, float]:
    """The centre and width that map ``low`` to black and ``high`` to white."""
    width = max(high - low, 1e-12) + 1
    return low + (width - 1) / 2 + 0.5, width


def write_outputs(
    paths: Sequence[Path], problem: Problem, image: Tensor, window: tuple[float, float] | None
) -> None:
    values = physical_array(problem, image)
    for path in paths:
        stream = io.BytesIO()
        if path.suffix.lower() == ".npy":
            np.save(stream, values[0] if len(values) == 1 else values, allow_pickle=False)
        else:
            row = np.concatenate(list(values), axis=1)
            grey = window_to_bytes(row, window or default_window(problem, row))
            Image.fromarray(grey).save(stream, "PNG")
        write_bytes_atomic(path, stream.getvalue())
