"""One stored slice: its image, its reference and what is known of it, in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from engine.files.atomic import write_bytes_atomic
from engine.files.path_safety import check_regular
from engine.files.record import plain
from engine.physics.units import IntensityMap
from engine.runs.run import image_sha256
from engine.spec.errors import RequestError
from engine.spec.numbers import as_float, numbers_in
from engine.workflows.volume.compute import SliceResult

HEADER_BYTES = 1 << 20  # more than names and metrics ever take


def slice_name(number: int) -> str:
    return f"slice-{number:05d}.safetensors"


def write_slice(folder: Path, result: SliceResult) -> None:
    write_bytes_atomic(folder / slice_name(result.number), pack_slice(result))


def pack_slice(result: SliceResult) -> bytes:
    """A slice as a file holds it, and as a worker sends it."""
    tensors = {"image": result.image}
    if result.reference is not None:
        tensors["reference"] = result.reference
    facts = {
        "number": result.number,
        "intensity": result.intensity.to_dict(),
        "sha256": result.sha256,
        "seconds": result.seconds,
        "nfe": result.nfe,
        "residual": result.residual,
        "metrics": result.metrics,
    }
    words = json.dumps(plain(facts), allow_nan=False)
    return save_tensors(tensors, metadata={"facts": words})


def read_slice(folder: Path, number: int, shape: tuple[int, int, int]) -> SliceResult:
    """A stored slice; one that is missing, cut short, changed or another's is a RequestError."""
    path = folder / slice_name(number)
    try:
        check_regular(path)
        if path.stat().st_size > most_bytes(shape):
            raise ValueError("too large")
        return unpack_slice(path.read_bytes(), number, shape)
    except OSError as error:
        raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise RequestError(f"{path} is damaged.") from error


def most_bytes(shape: tuple[int, int, int]) -> int:
    """More than a sound slice ever takes."""
    return HEADER_BYTES + 2 * torch.float32.itemsize * shape[0] * shape[1] * shape[2]


def unpack_slice(content: bytes, number: int, shape: tuple[int, int, int]) -> SliceResult:
    """The slice, or `ValueError` for anything that is not exactly slice ``number``."""
    try:
        tensors = load_tensors(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        result = _result(json.loads(header["__metadata__"]["facts"]), tensors)
    except (
        SafetensorError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        RequestError,
    ) as error:
        raise ValueError("not a slice") from error
    images = [image for image in (result.image, result.reference) if image is not None]
    sound = all(tuple(i.shape) == shape and i.dtype == torch.float32 for i in images)
    if not sound or result.number != number or image_sha256(result.image) != result.sha256:
        raise ValueError("it does not hold what it says")
    return result


def _result(facts: Any, tensors: dict[str, torch.Tensor]) -> SliceResult:
    return SliceResult(
        number=facts["number"],
        image=tensors["image"],
        intensity=IntensityMap(**facts["intensity"]),
        sha256=facts["sha256"],
        seconds=as_float(facts["seconds"]),
        nfe=int(facts["nfe"]),
        residual=as_float(facts["residual"]),
        metrics=numbers_in(facts["metrics"]),
        reference=tensors.get("reference"),
    )
