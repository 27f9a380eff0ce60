"""The checkpoint beside a run record: all that is needed to go on.

The record is written before the checkpoint, so at any moment the checkpoint's iteration is in
the record's history: after a kill, the history is cut back to the checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import check_whole
from engine.spec.errors import RequestError


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
            check_whole(path, held=True)
            content = path.read_bytes()
            tensors = load_tensors(content)
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            k = int(header["__metadata__"]["k"])
            image = tensors.pop("image")
            count = sum(name.startswith("generator.") for name in tensors)
            generators = [tensors[f"generator.{i}"] for i in range(count)]
        except OSError as error:
            raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise RequestError(f"{path} is damaged and cannot be resumed from.") from error
        state = {n[6:]: t for n, t in tensors.items() if n.startswith("state.")}
        if k < 0 or any(g.dtype != torch.uint8 for g in generators):
            raise RequestError(f"{path} is damaged and cannot be resumed from.")
        return cls(k, state, image, generators)
