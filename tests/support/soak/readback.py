"""Whether an exported file holds the image it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from engine.data.images.air import AIR_HU, LOWEST_HU
from engine.data.source import open_input
from engine.spec.errors import DualscopeError
from engine.spec.input_options import InputOptions

ROUNDING: Final = 0.501  # DICOM holds whole numbers


def fault_of(path: Path, images: np.ndarray) -> str:
    """Why the file is not ``images`` [B, H, W]; empty when it is. Pictures hold one slice each."""
    try:
        return _fault_of(path, images)
    except (DualscopeError, OSError, ValueError) as error:
        return f"{path.name} cannot be read: {error}"


def _fault_of(path: Path, images: np.ndarray) -> str:
    if path.suffix == ".png":
        with Image.open(path) as picture:
            picture.load()
            zoom, rest = divmod(picture.height, images.shape[1])  # small ones are enlarged
            right = not rest and picture.width == zoom * images.shape[2] > 0
        return "" if right else f"{path.name} has another size"
    if path.suffix == ".npy":
        return "" if np.array_equal(np.load(path).reshape(images.shape), images) else path.name
    dataset = open_input(str(path), InputOptions())
    found = np.stack([dataset.preview(number) for number in range(len(dataset))])
    if found.shape != images.shape:
        return f"{path.name} has another size"
    wanted = images * _scale(found, images)
    # what a CT image has below air is air when it is opened
    lifted = (found == AIR_HU) & (wanted < LOWEST_HU) & (dataset.modality == "CT")
    off = float(np.abs(found - np.where(lifted, found, wanted)).max())
    allowed = 0.0 if path.name.endswith(".nii.gz") else ROUNDING
    return f"{path.name} is off by {off:g}" if off > allowed else ""


def _scale(found: np.ndarray, images: np.ndarray) -> float:
    """MR in DICOM is multiplied by a power of two, to make use of whole numbers."""
    if images.min() < 0 or not found.max() > 0:
        return 1.0
    return float(2.0 ** np.round(np.log2(found.max() / images.max())))
