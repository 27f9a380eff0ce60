"""Our file format for priors: safetensors with metadata that says all that is needed to use them.

A safetensors file holds names, shapes and numbers, and no code. Everything in the metadata is
checked before the network is built, and every shape before its numbers are read.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import check_whole
from engine.physics.units import IntensityMap
from engine.priors.familiarity import Familiarity, read_beside
from engine.priors.network_prior import NetworkPrior
from engine.priors.networks import build_network
from engine.priors.precondition import Preconditioned, precondition
from engine.priors.prior import PriorInfo
from engine.spec.errors import RequestError

FORMAT, VERSION = "dualscope-prior", "1.1"
# files of version 1 have no preconditioning_kwargs
READABLE_VERSIONS = ("1", VERSION)
LARGEST_FILE_BYTES = 4 << 30
LONGEST_TEXT = 200_000
LONGEST_REASON = 500  # of a refusal, which may quote the file
DTYPES = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32}


@dataclass(frozen=True)
class PriorHeader:
    """What the file says about the prior; written to and read from strings.

    ``source_sha256`` is the hash of what the weights came from: the training settings and data,
    or the imported checkpoint.
    """

    name: str
    architecture: str
    architecture_kwargs: dict[str, Any]
    preconditioning: str
    sigma_data: float
    sigma_min: float
    sigma_max: float
    channels: int
    intensity: dict[str, Any]
    native_size: int | None
    training_data: str
    licence: str
    source_sha256: str
    description: str
    model_card: str = ""
    preconditioning_kwargs: dict[str, Any] = field(default_factory=dict)
    symmetric: bool = False
    familiarity: dict[str, Any] = field(default_factory=dict)  # of validation slices, if measured

    def to_strings(self) -> dict[str, str]:
        values = {k: v if isinstance(v, str) else json.dumps(v) for k, v in vars(self).items()}
        return {"format": FORMAT, "version": VERSION, **values}

    @classmethod
    def from_strings(cls, strings: dict[str, str]) -> PriorHeader:
        """Check every field; RequestError names the first that is wrong."""
        if strings.get("format") != FORMAT:
            raise RequestError(
                "it has no Dualscope metadata; convert it with "
                "'dualscope prior import CHECKPOINT OUT.safetensors'"
            )
        if strings.get("version") not in READABLE_VERSIONS:
            raise RequestError(f"its format version {strings.get('version')!r} is not {VERSION}")
        if any(len(text) > LONGEST_TEXT for text in strings.values()):
            raise RequestError("its metadata are too long")
        values: dict[str, Any] = {name: _text(strings, name) for name in TEXTS}
        values |= {name: _number(strings, name) for name in NUMBERS}
        if strings["version"] == VERSION:
            values["preconditioning_kwargs"] = _json(strings, "preconditioning_kwargs", dict)
        header = cls(
            **values,
            architecture_kwargs=_json(strings, "architecture_kwargs", dict),
            intensity=_json(strings, "intensity", dict),
            channels=_json(strings, "channels", int),
            native_size=_json(strings, "native_size", int | None),
            model_card=strings.get("model_card", ""),
            symmetric=strings.get("symmetric") == "true",
            familiarity=_json(strings, "familiarity", dict) if "familiarity" in strings else {},
        )
        header.check()
        return header

    def check(self) -> None:
        if not 0 <= self.sigma_min < self.sigma_max or not self.sigma_data > 0:
            raise RequestError(
                "its noise levels are not 0 <= sigma_min < sigma_max, sigma_data > 0"
            )
        if not 1 <= self.channels <= 8 or not self._channels_fit():
            raise RequestError(f"its channels ({self.channels}) do not fit its network")
        if self.native_size is not None and not 1 <= self.native_size <= 1 << 14:
            raise RequestError(f"its native size {self.native_size} is out of range")
        self.intensity_map()
        if self.familiarity:
            Familiarity.from_dict(self.familiarity)

    def _channels_fit(self) -> bool:
        """The network takes images of these channels and returns them, perhaps with variances."""
        network, channels = self.architecture_kwargs, self.channels
        factors = (1, 2) if self.preconditioning in LEARNED_VARIANCE else (1,)
        return (
            network.get("channels", channels) == channels
            and network.get("in_channels", channels) == channels
            and network.get("out_channels", channels) in [channels * f for f in factors]
        )

    def intensity_map(self) -> IntensityMap:
        kind, scale, offset = (self.intensity.get(key) for key in ("kind", "scale", "offset"))
        lowest = self.intensity.get("lowest_hu", 0.0)
        finite = all(_is_number(value) for value in (scale, offset, lowest))
        if set(self.intensity) - {"lowest_hu"} != {"kind", "scale", "offset"} or not finite:
            raise RequestError("its intensity map needs kind, scale and offset")
        return IntensityMap(str(kind), float(scale), float(offset))  # type: ignore[arg-type]


TEXTS = (
    "name",
    "architecture",
    "preconditioning",
    "training_data",
    "licence",
    "source_sha256",
    "description",
)
NUMBERS = ("sigma_data", "sigma_min", "sigma_max")
# networks under these may have further outputs, which the preconditioning drops
LEARNED_VARIANCE = ("iddpm", "discrete")


def save_prior(
    path: Path, header: PriorHeader, weights: dict[str, Tensor], half: bool = True
) -> None:
    """Write a prior at once or not at all; ``half`` stores float16 (computing stays float32)."""
    dtype = torch.float16 if half else torch.float32
    tensors = {k: v.detach().to("cpu", dtype).contiguous() for k, v in weights.items()}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise RequestError(f"{path} is not written: weight '{name}' is not finite in {dtype}.")
    write_bytes_atomic(path, save(tensors, header.to_strings()))


def load_prior_file(path: Path) -> NetworkPrior:
    """The prior in a file of our format; anything else is refused in one sentence."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise RequestError("it is larger than any prior")
        check_whole(path, path.name)
        with safe_open(path, framework="pt") as file:
            header = PriorHeader.from_strings(file.metadata() or {})
            weights = _read_weights(file, header)
        denoiser = _build(header)
        denoiser.load_state_dict(weights, strict=True)
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except RequestError as error:
        raise RequestError(f"{path} cannot be used as a prior: {_sentence(error)}") from error
    except (OSError, SafetensorError, ValueError) as error:
        raise RequestError(f"{path} cannot be read as safetensors: {_sentence(error)}") from error
    info = _info(header, sha256)
    if (beside := read_beside(path, sha256)) is not None:
        info.details["familiarity"] = beside
    return NetworkPrior(denoiser, info)


def _build(header: PriorHeader) -> Preconditioned:
    network = build_network(header.architecture, header.architecture_kwargs)
    return precondition(
        header.preconditioning, network, header.sigma_data, header.preconditioning_kwargs
    )


def _read_weights(file: Any, header: PriorHeader) -> dict[str, Tensor]:
    """All tensors in float32, after their names, shapes and types are found to fit."""
    with torch.device("meta"):
        expected = {n: list(t.shape) for n, t in _build(header).state_dict().items()}
    found = set(file.keys())
    if found != set(expected):
        odd = sorted(found ^ set(expected))[0]
        raise RequestError(f"weight '{odd}' is {'missing' if odd in expected else 'unexpected'}")
    for name, shape in expected.items():
        view = file.get_slice(name)
        if view.get_shape() != shape or view.get_dtype() not in DTYPES:
            raise RequestError(
                f"weight '{name}' is {view.get_dtype()} {view.get_shape()}, expected {shape}"
            )
    weights = {name: file.get_tensor(name).float() for name in expected}
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise RequestError(f"weight '{name}' holds NaN or infinity")
    return weights


def _info(header: PriorHeader, sha256: str) -> PriorInfo:
    return PriorInfo(
        name=header.name,
        channels=header.channels,
        intensity=header.intensity_map(),
        native_size=header.native_size,
        sigma_min=header.sigma_min,
        sigma_max=header.sigma_max,
        training_data=header.training_data,
        licence=header.licence,
        sha256=sha256,
        description=header.description,
        symmetric=header.symmetric,
        details={
            "architecture": header.architecture,
            "architecture_kwargs": header.architecture_kwargs,
            "preconditioning": header.preconditioning,
            "preconditioning_kwargs": header.preconditioning_kwargs,
            "sigma_data": header.sigma_data,
            "lowest_hu": header.intensity.get("lowest_hu"),  # if the training images were clipped
            "source_sha256": header.source_sha256,
            "model_card": header.model_card,
            "familiarity": header.familiarity or None,
        },
    )


def _text(strings: dict[str, str], name: str) -> str:
    if not strings.get(name, "").strip():
        raise RequestError(f"its metadata lack '{name}'")
    return strings[name]


def _json(strings: dict[str, str], name: str, kind: Any) -> Any:
    try:
        value = json.loads(_text(strings, name))
    except (ValueError, RecursionError):
        raise RequestError(f"its metadata field '{name}' is not JSON") from None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RequestError(f"its metadata field '{name}' has the wrong type")
    return value


def _number(strings: dict[str, str], name: str) -> float:
    value = _json(strings, name, int | float)
    if not _is_number(value):
        raise RequestError(f"its metadata field '{name}' is not a finite number")
    return float(value)


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and abs(value) < 1e12 and math.isfinite(value)


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())[:LONGEST_REASON].rstrip(".")
    return f"{text}."
