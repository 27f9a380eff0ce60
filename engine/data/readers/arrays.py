"""Plain arrays of images: ``.npy`` without running anything from the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset, ImageDataset
from engine.data.input_options import InputOptions
from engine.errors import RequestError
from engine.physics.units import MU_WATER_PER_MM

MAX_PIXELS = 1 << 28


def open_npy(path: Path, options: InputOptions) -> Dataset:
    if options.kind not in (None, "image"):
        raise RequestError(f"{path}: --kind {options.kind} is not supported for .npy; give images.")
    array = read_npy(path)
    if array.ndim not in (2, 3) or array.size == 0 or array.dtype.kind not in "fiuc":
        raise RequestError(f"{path} holds {array.dtype} {array.shape}: give numbers [H, W].")
    if array.shape[-1] * array.shape[-2] > MAX_PIXELS:
        raise RequestError(f"{path} has slices of {array.shape[-2:]} pixels: too large.")
    dataset = image_array(array if array.ndim == 3 else array[None], path, options)
    dataset.files = (path,)
    return dataset


def read_npy(path: Path) -> np.ndarray:
    """Mapped, not read: slices come from the disk when they are used."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError as error:
        raise RequestError(f"{path} may not be read: {error.strerror}.") from error
    except (OSError, ValueError, EOFError) as error:
        raise RequestError(f"{path} cannot be read as a NumPy array.") from error


def image_array(array: np.ndarray, path: Path, options: InputOptions) -> ImageDataset:
    """``[N, H, W]`` with the unit the person named; nothing is guessed for CT."""
    is_complex = array.dtype.kind == "c"
    modality = options.modality.upper() if options.modality else ("MR" if is_complex else "CT")
    if modality == "CT" and is_complex:
        raise RequestError(f"{path} is complex: it is no CT image (use --modality mr).")
    if modality == "CT" and options.unit not in ("hu", "mu", "normalised"):
        raise RequestError(f"{path} has no unit: say --unit hu, mu or normalised.")
    scale, offset = 1.0, 0.0
    if modality == "CT" and options.unit == "mu":
        scale, offset = 1000 / (options.mu_water or MU_WATER_PER_MM), -1000.0
    elif modality == "CT" and options.unit == "normalised":
        scale = 1000.0  # the engine's own CT map, HU = 1000 x

    def read(number: int) -> np.ndarray:
        if is_complex:
            return array[number].astype(np.complex64)
        return (array[number].astype(np.float32) * scale + offset).astype(np.float32)

    pixel = options.pixel_mm or 1.0
    dataset = ImageDataset(
        modality=modality,
        description=path.name,
        count=len(array),
        image_size=(array.shape[-2], array.shape[-1]),
        pixel_mm=(pixel, pixel),
        read=read,
    )
    dataset.add_fact("pixel", f"{pixel:g} mm", "option" if options.pixel_mm else "assumed")
    if modality == "CT":
        dataset.add_fact("unit", options.unit, "option")
    return dataset
