"""Tensors as a file describes them, read only when everything about them is known to fit."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.priors.importing.safe_pickle import Record
from engine.priors.safetensors_file import FORMAT
from engine.spec.errors import RequestError

MOST_DIMENSIONS = 8
# whole numbers occur in optimiser states and counters; only float weights are ever read
DTYPES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "BoolStorage": torch.bool,
    "ByteStorage": torch.uint8,
}
WEIGHT_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class Weight(ABC):
    """One tensor of a checkpoint: its type and shape now, its numbers on request."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @abstractmethod
    def read(self) -> Tensor:
        """The numbers, as a float32 tensor of its own."""


@dataclass(frozen=True)
class Storage:
    """A run of numbers in the file; ``load(start, stop)`` returns those bytes of it."""

    dtype: torch.dtype
    count: int
    load: Callable[[int, int], bytes]


@dataclass(frozen=True)
class StoredTensor(Weight):
    """A view into a storage; made by ``rebuild_tensor``, which checks that it stays inside."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]
        return self.storage.dtype

    def read(self) -> Tensor:
        # Weights lie densely in their storage, in whatever order of dimensions. Insisting on it
        # means that reading a tensor costs its own size, however large a storage it points into.
        count, size = math.prod(self.shape), self.dtype.itemsize
        reach = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        if reach != count:
            raise RequestError("a tensor is not stored densely")
        content = self.storage.load(self.offset * size, (self.offset + count) * size)
        if len(content) != count * size:
            raise RequestError("a tensor's data are shorter than declared")
        flat = torch.frombuffer(bytearray(content), dtype=self.dtype)
        return flat.as_strided(self.shape, self.stride).to(torch.float32).contiguous()


def rebuild_tensor(
    storage: Any, offset: Any, shape: Any, stride: Any, requires_grad: Any, hooks: Any, *more: Any
) -> StoredTensor:
    """Stands in for ``torch._utils._rebuild_tensor_v2``.

    A view must lie inside of its storage and must not show more numbers than that holds, which
    strides of 0 would allow; so no file can make us reserve more memory than it is long.
    """
    if type(storage) is not Storage:
        raise RequestError("a tensor has no storage")
    whole = all(type(v) is int and 0 <= v < 1 << 48 for v in (offset, *shape, *stride))
    if type(shape) is not tuple or type(stride) is not tuple or not whole:
        raise RequestError("a tensor has an absurd shape, stride or offset")
    if len(shape) != len(stride) or len(shape) > MOST_DIMENSIONS:
        raise RequestError("a tensor's shape and stride do not belong together")
    reach = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    count = math.prod(shape)
    if (count and reach >= storage.count) or count > storage.count:
        raise RequestError(f"a tensor of shape {list(shape)} reaches beyond its storage")
    return StoredTensor(storage, offset, shape, stride)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> StoredTensor:
    """Stands in for ``torch._utils._rebuild_parameter``."""
    if type(data) is not StoredTensor:
        raise RequestError("a parameter is not a tensor")
    return data


def ordered_dict(*items: Any) -> dict[Any, Any]:
    """Stands in for ``collections.OrderedDict``, which is written empty and filled after."""
    if items not in ((), ([],)):
        raise RequestError("its pickle fills a dictionary in an unusual way")
    return {}


DTYPE = "dtype"
NUMBERS = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "b1": "?"}


def _numpy_dtype(code: Any, *flags: Any) -> Record:
    if type(code) is not str or code not in NUMBERS:
        raise RequestError("it holds a numpy value that is not a plain number")
    return Record(DTYPE, code)


def _numpy_scalar(dtype: Any, content: Any) -> float | int | bool:
    """A number from its bytes; the dtype's state is (version, byte order, ...)."""
    if type(dtype) is not Record or dtype.kind != DTYPE or type(content) is not bytes:
        raise RequestError("it holds a numpy value that is not a plain number")
    order = dtype.state[1] if type(dtype.state) is tuple and len(dtype.state) > 1 else "<"
    form = (">" if order == ">" else "<") + NUMBERS[dtype.made]
    if len(content) != struct.calcsize(form):
        raise RequestError("it holds a numpy number of the wrong length")
    return struct.unpack(form, content)[0]


NUMPY_NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _numpy_dtype,
    ("numpy.core.multiarray", "scalar"): _numpy_scalar,
    ("numpy._core.multiarray", "scalar"): _numpy_scalar,
}


NAMED_DTYPES = {
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
            if kind not in NAMED_DTYPES:
                raise RequestError(f"tensor '{name[:100]}' is of the type {str(kind)[:20]}")
            weights[name] = SafetensorsWeight(
                file, name, NAMED_DTYPES[kind], tuple(view.get_shape())
            )
    except (SafetensorError, ValueError, OverflowError) as error:
        text = " ".join(str(error).split())[:200]
        raise RequestError(f"{path.name} is no valid safetensors file ({text})") from None
    return weights
