"""Inputs as images: the embedded demos and plain arrays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.data.phantoms import brain_mr, ct_phantom
from engine.errors import RequestError
from engine.physics.units import mu_to_hu

DEMO_SEED = 7
MAX_PIXELS = 1 << 28


@dataclass(frozen=True)
class ImageInput:
    """Slices ``[N, C, H, W]``: HU (CT, one channel) or complex as two channels (MR)."""

    images: Tensor
    modality: str
    pixel_mm: float
    sha256: str
    description: str
    numbers: tuple[int, ...] = (0,)  # which slices of the input these are


def open_input(
    text: str,
    *,
    kind: str | None = None,
    unit: str | None = None,
    modality: str | None = None,
    pixel_mm: float | None = None,
    slices: str | None = None,
) -> ImageInput:
    """Open ``demo:ct``, ``demo:mri`` (``demo:ct:SEED`` for another phantom) or a ``.npy`` file."""
    if text.startswith("demo:"):
        parse_slices(slices, 1)
        return _open_demo(text)
    path = Path(text)
    if not path.exists():
        raise RequestError(f"{text} does not exist.")
    if path.suffix.lower() != ".npy":
        raise RequestError(f"{text}: this kind of file is not supported; give a .npy array.")
    if kind not in (None, "image"):
        raise RequestError(f"{text}: --kind {kind} is not supported for .npy files; give images.")
    array = _read_npy(path)
    chosen = parse_slices(slices, len(array))
    source = _from_array(array[chosen], text, sha256_of(path), unit, modality, pixel_mm or 1.0)
    return replace(source, numbers=tuple(range(len(array))[chosen]))


def _open_demo(text: str) -> ImageInput:
    _, name, *rest = text.split(":")
    seed_text = rest[0] if rest else str(DEMO_SEED)
    if name not in ("ct", "mri") or len(rest) > 1 or not seed_text.isdecimal():
        raise RequestError(f"'{text}' is not a demo: use demo:ct or demo:mri.")
    if name == "ct":
        phantom = ct_phantom(seed=int(seed_text), size=256)
        images = torch.from_numpy(phantom.image)[None, None]
    else:
        phantom = brain_mr(seed=int(seed_text), size=256)
        complex_image = torch.from_numpy(phantom.image)
        images = torch.view_as_real(complex_image).movedim(-1, 0)[None].contiguous()
    digest = hashlib.sha256(np.ascontiguousarray(phantom.image).tobytes()).hexdigest()
    modality = "CT" if name == "ct" else "MR"
    return ImageInput(images, modality, phantom.pixel_mm, digest, phantom.description)


def _read_npy(path: Path) -> np.ndarray:
    """``[N, H, W]`` without running anything from the file."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError as error:
        raise RequestError(f"{path} may not be read: {error.strerror}.") from error
    except (OSError, ValueError, EOFError) as error:
        raise RequestError(f"{path} cannot be read as a NumPy array.") from error
    if array.ndim not in (2, 3) or array.size == 0 or array.dtype.kind not in "fiuc":
        raise RequestError(f"{path} holds {array.dtype} {array.shape}: give numbers [H, W].")
    if array.shape[-1] * array.shape[-2] > MAX_PIXELS:
        raise RequestError(f"{path} has slices of {array.shape[-2:]} pixels: too large.")
    return array if array.ndim == 3 else array[None]


def _from_array(
    array: np.ndarray,
    name: str,
    digest: str,
    unit: str | None,
    modality: str | None,
    pixel_mm: float,
) -> ImageInput:
    is_complex = array.dtype.kind == "c"
    if modality is None:
        modality = "MR" if is_complex else "CT"
    if not np.isfinite(array).all():
        raise RequestError(f"{name} holds NaN or infinite values.")
    if modality == "MR":
        image = torch.from_numpy(np.array(array, dtype=np.complex64))
        images = torch.view_as_real(image).movedim(-1, 1).contiguous()
        return ImageInput(images, "MR", pixel_mm, digest, name)
    if is_complex:
        raise RequestError(f"{name} is complex: it is no CT image (use --modality mr).")
    if unit is None:
        raise RequestError(f"{name} has no unit: say --unit hu, mu or normalised.")
    images = torch.from_numpy(np.array(array, dtype=np.float32))[:, None]
    if unit == "mu":
        images = mu_to_hu(images)
    elif unit == "normalised":
        images = images * 1000  # the engine's own CT map, HU = 1000 x
    return ImageInput(images, "CT", pixel_mm, digest, name)


def parse_slices(text: str | None, count: int) -> slice:
    """'N' or 'A:B[:S]' as Python counts them; None is everything."""
    if text is None:
        return slice(None)
    try:
        parts = [int(part) if part else None for part in text.split(":")]
        if len(parts) == 1 and parts[0] is not None:
            parts = [parts[0], parts[0] + 1]
        elif not 2 <= len(parts) <= 3:
            raise ValueError
        start, stop, step = (*parts, None)[:3]
        chosen = slice(start, stop, step)
        if not len(range(count)[chosen]):
            raise ValueError
    except ValueError:
        raise RequestError(
            f"--slice '{text}' selects nothing: give N or A:B[:S] within 0..{count - 1}."
        ) from None
    return chosen


def sha256_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
