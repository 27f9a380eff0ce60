"""The run record (RUN.json) and the checkpoint beside it.

The record is written before the checkpoint, so at any moment the checkpoint's iteration is in
the record's history: after a kill, the history is cut back to the checkpoint.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from engine.files.atomic import write_bytes_atomic
from engine.files.path_safety import check_regular
from engine.files.shared_record import shared_record
from engine.spec.errors import RequestError

FORMAT = "dualscope-run"
FORMAT_VERSION = 2
MAX_RECORD_BYTES = 256 << 20


@dataclass
class RunRecord:
    """How a reconstruction was made; enough to make it again."""

    job: dict[str, Any]
    versions: dict[str, str] = field(default_factory=dict)
    device: str = "cpu"
    prior: dict[str, Any] | None = None
    input: dict[str, Any] = field(default_factory=dict)
    operator: dict[str, Any] = field(default_factory=dict)
    status: str = "running"
    message: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    # sentences about the result, by what they are about: 'noise', 'prior', ...
    verdicts: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    result_sha256: str = ""  # of the image; records of older versions have none
    threads: int = 0  # of the processor: sums in another order have other bits; 0 if not known

    def write(self, path: Path) -> None:
        body = {"format": FORMAT, "format_version": FORMAT_VERSION, **self.content()}
        write_bytes_atomic(path, json.dumps(body, indent=1, allow_nan=False).encode())

    def content(self) -> dict[str, Any]:
        """JSON-able; names no file when the job is de-identified."""
        body = plain(asdict(self))
        return shared_record(body, deidentify=True) if self.job.get("deidentify") else body

    @classmethod
    def read(cls, path: Path) -> RunRecord:
        try:
            check_regular(path)
            if path.stat().st_size > MAX_RECORD_BYTES:
                raise RequestError(f"{path} is too large to be a run record.")
            body = json.loads(path.read_bytes())
        except OSError as error:
            raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
        except (ValueError, RecursionError) as error:
            raise RequestError(f"{path} is not a run record: it is not valid JSON.") from error
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise RequestError(f"{path} is not a run record of Dualscope.")
        if body.pop("format_version", None) != FORMAT_VERSION:
            raise RequestError(f"{path} was written by another version of Dualscope.")
        blank = cls(job={})
        for name, value in body.items():
            if not hasattr(blank, name) or type(value) is not type(getattr(blank, name)):
                if name == "prior" and (value is None or isinstance(value, dict)):
                    continue
                raise RequestError(f"{path} is damaged: the entry '{name}' cannot be used.")
        try:
            return cls(**body)
        except TypeError as error:
            raise RequestError(f"{path} is damaged: the entry 'job' is missing.") from error


def plain(value: Any) -> Any:
    """JSON has no NaN or infinity: write them as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@dataclass
class Checkpoint:
    """All that is needed, beside the job, to continue after iteration ``k``."""

    k: int
    state: dict[str, Tensor]
    image: Tensor
    generators: list[Tensor]

    @staticmethod
    def path_beside(record: Path) -> Path:
        return record.with_name(record.stem + ".checkpoint.safetensors")

    def write(self, path: Path) -> None:
        tensors = {f"state.{name}": value for name, value in self.state.items()}
        tensors |= {f"generator.{i}": value for i, value in enumerate(self.generators)}
        tensors["image"] = self.image
        # clone: safetensors refuses tensors that share memory, as image and state may
        stored = {name: value.detach().cpu().clone() for name, value in tensors.items()}
        write_bytes_atomic(path, save_tensors(stored, metadata={"k": str(self.k)}))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        try:
            check_regular(path)
            content = path.read_bytes()
            tensors = load_tensors(content)
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            k = int(header["__metadata__"]["k"])
            image = tensors.pop("image")
        except OSError as error:
            raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise RequestError(f"{path} is damaged and cannot be resumed from.") from error
        state = {n[6:]: t for n, t in tensors.items() if n.startswith("state.")}
        count = sum(name.startswith("generator.") for name in tensors)
        generators = [tensors[f"generator.{i}"] for i in range(count)]
        if k < 0 or any(g.dtype != torch.uint8 for g in generators):
            raise RequestError(f"{path} is damaged and cannot be resumed from.")
        return cls(k, state, image, generators)
