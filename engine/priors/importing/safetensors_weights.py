"""Tensors of a foreign safetensors file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.priors.importing.stored import Weight
from engine.priors.safetensors_file import FORMAT
from engine.spec.errors import RequestError

DTYPES = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
LARGEST_HEADER, MOST_TENSORS = 10 << 20, 50_000


@dataclass(frozen=True)
class SafetensorsWeight(Weight):
    """A tensor in an open file."""

    file: Any
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    def read(self) -> Tensor:
        try:
            return self.file.get_tensor(self.name).float().contiguous()
        except SafetensorError as error:
            raise RequestError(f"tensor '{self.name[:100]}' cannot be read ({error})") from None


def is_safetensors(start: bytes) -> bool:
    """Whether a file beginning like this has the length of a JSON header, and the header."""
    return len(start) > 8 and start[8:9] == b"{"


def read_safetensors(path: Path) -> dict[str, Weight]:
    """All tensors of a file by name; their numbers stay in the file."""
    with path.open("rb") as stream:
        start = stream.read(8)
    if len(start) != 8 or struct.unpack("<Q", start)[0] > LARGEST_HEADER:
        raise RequestError(f"{path.name} has a header that no checkpoint needs")
    try:
        file = safe_open(path, framework="pt").__enter__()
        if (file.metadata() or {}).get("format") == FORMAT:
            raise RequestError("it is a Dualscope prior already; use it as it is")
        names = list(file.keys())
        if len(names) > MOST_TENSORS:
            raise RequestError(f"{path.name} holds {len(names)} tensors")
        weights: dict[str, Weight] = {}
        for name in names:
            view = file.get_slice(name)
            kind = view.get_dtype()
            if kind not in DTYPES:
                raise RequestError(f"tensor '{name[:100]}' is of the type {str(kind)[:20]}")
            weights[name] = SafetensorsWeight(file, name, DTYPES[kind], tuple(view.get_shape()))
    except (SafetensorError, ValueError, OverflowError) as error:
        text = " ".join(str(error).split())[:200]
        raise RequestError(f"{path.name} is no valid safetensors file ({text})") from None
    return weights
