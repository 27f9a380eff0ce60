"""What every reader of a foreign format delivers, and what is checked of it the same way."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.files.budget import check_whole, read_small
from engine.priors.importing.stored import WEIGHT_DTYPES, Weight
from engine.priors.networks import build_network
from engine.priors.networks.blocks import ResamplingConv, filter_2d
from engine.priors.precondition import precondition
from engine.spec.errors import RequestError

LARGEST_FILE_BYTES = 4 << 30
LARGEST_JSON_BYTES = 1 << 20
MOST_VALUES, DEEPEST = 10_000, 12


@dataclass(frozen=True)
class Checkpoint:
    """A foreign checkpoint, translated to our names; its numbers are still in the file.

    Attributes
    ----------
    source
        The file with the weights.
    format
        What the file was recognised as, for the person.
    weights
        By the names of our denoiser (``model.*``).
    facts
        Anything else worth keeping about the origin, for the model card.
    """

    source: Path
    format: str
    architecture: str
    architecture_kwargs: dict[str, Any]
    preconditioning: str
    weights: Mapping[str, Weight]
    native_size: int | None
    channels: int
    sigma_min: float = 0.002
    sigma_max: float = 80.0
    sigma_data: float = 0.5
    preconditioning_kwargs: dict[str, Any] = field(default_factory=dict)
    licence: str = "unknown (see where the checkpoint came from)"
    facts: dict[str, str] = field(default_factory=dict)


def read_weights(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """All weights in float32, found to fit our own network exactly (``strict=True``).

    Names, shapes, types and the total size are compared with the network on the meta device, so
    before a single number is read or reserved.
    """
    weights = checkpoint.weights
    with torch.device("meta"):
        network = build_network(checkpoint.architecture, checkpoint.architecture_kwargs)
        denoiser = precondition(
            checkpoint.preconditioning,
            network,
            checkpoint.sigma_data,
            checkpoint.preconditioning_kwargs,
        )
    expected = {name: tuple(value.shape) for name, value in denoiser.state_dict().items()}
    odd = sorted(set(weights) ^ set(expected))
    if odd:
        kind = "missing" if odd[0] in expected else "unexpected"
        raise RequestError(f"weight '{odd[0][:200]}' is {kind}")
    for name, shape in expected.items():
        weight = weights[name]
        if weight.dtype not in WEIGHT_DTYPES:
            raise RequestError(f"weight '{name}' is of type {weight.dtype}, not a float")
        if weight.shape != shape:
            raise RequestError(f"weight '{name}' is {list(weight.shape)}, expected {list(shape)}")
    stored = sum(math.prod(w.shape) * w.dtype.itemsize for w in weights.values())
    if stored > checkpoint.source.stat().st_size:
        raise RequestError("its weights share storage, so they are larger than the file itself")
    tensors = {name: weights[name].read() for name in expected}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise RequestError(f"weight '{name}' holds NaN or infinity")
    _check_filters(denoiser, tensors)
    denoiser.load_state_dict(tensors, strict=True, assign=True)
    return tensors


def _check_filters(denoiser: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Resampling filters are constants of the architecture that checkpoints repeat."""
    for name, module in denoiser.named_modules():
        if isinstance(module, ResamplingConv) and module.resample_filter is not None:
            found = tensors[f"{name}.resample_filter"]
            if not torch.allclose(found, filter_2d(module.taps), atol=1e-3):
                raise RequestError(f"'{name}.resample_filter' is not the filter {module.taps}")


def check_size(path: Path) -> None:
    """Before a file is mapped, read or hashed: not too large, and all of it on the disk."""
    if path.stat().st_size > LARGEST_FILE_BYTES:
        raise RequestError(f"it is larger than {LARGEST_FILE_BYTES >> 30} GiB")
    check_whole(path, path.name)


def read_json(path: Path) -> dict[str, Any]:
    """A small JSON file of settings, whatever else it is called."""
    content = read_small(path, LARGEST_JSON_BYTES, "a configuration")
    try:
        values = plain(json.loads(content))
    except (ValueError, RecursionError):
        raise RequestError(f"{path.name} is not JSON") from None
    if type(values) is not dict:
        raise RequestError(f"{path.name} does not hold names and values")
    return values


def plain(value: Any) -> Any:
    """A copy of nested settings as JSON knows them; refuses anything else.

    The count also stops structures that contain themselves, or the same part again and again.
    """
    left = MOST_VALUES

    def copy(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise RequestError("its settings are nested too deeply or too long")
        if value is None or type(value) in (bool, str):
            return value[:1000] if type(value) is str else value
        if type(value) is int and abs(value) < 1 << 62:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else str(value)
        if type(value) in (list, tuple):
            return [copy(item, depth + 1) for item in value]
        if type(value) is dict and all(type(key) is str for key in value):
            return {key[:200]: copy(item, depth + 1) for key, item in value.items()}
        raise RequestError(f"its settings hold a {type(value).__name__}")

    return copy(value, 0)


def chosen(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults, replaced by what the configuration says under the same names."""
    return {name: config.get(name, value) for name, value in defaults.items()}
