"""The storage of one tensor inside of another pickle.

A tensor that is pickled directly (not by ``torch.save``) carries its numbers as bytes for
``torch.storage._load_from_bytes``, which would unpickle them without any restriction: a pickle
in the pickle. Those bytes are a file of torch's old format: four pickles (a magic number, a
version, facts on the machine, the object), the list of storage keys, and for each key a count
and the numbers. All of them are read here by our own machine.
"""

from __future__ import annotations

import io
import struct
from typing import Any

from engine.priors.importing.bounds import Budget
from engine.priors.importing.safe_pickle import read_pickle
from engine.priors.importing.stored import DTYPES, Storage
from engine.spec.errors import RequestError

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


def storage_type(name: str) -> Any:
    """The handler for a class such as ``torch.FloatStorage``, which is only ever named."""

    def refuse(*arguments: Any) -> Any:
        raise RequestError(f"its pickle makes a torch.{name} by hand")

    refuse.dtype = DTYPES[name]  # type: ignore[attr-defined]
    return refuse


STORAGE_NAMES = {("torch", name): storage_type(name) for name in DTYPES}


def declared_storage(identity: Any) -> tuple[Any, str, int]:
    """dtype, key and count of a persistent id ('storage', type, key, location, count, ...)."""
    if type(identity) is not tuple or len(identity) not in (5, 6) or identity[0] != "storage":
        raise RequestError("its pickle refers to something that is not a tensor's storage")
    kind, key, _, count = identity[1:5]
    dtype = getattr(getattr(kind, "handler", None), "dtype", None)
    if dtype is None or type(key) is not str or type(count) is not int or count < 0:
        raise RequestError("its pickle declares a storage without type, key or size")
    if len(identity) == 6 and identity[5] is not None:
        raise RequestError("its pickle declares a storage inside of a storage")
    return dtype, key, count


def load_from_bytes(content: Any, budget: Budget | None = None) -> Storage:
    """Stands in for ``torch.storage._load_from_bytes``."""
    if type(content) is not bytes:
        raise RequestError("a tensor's data are not bytes")
    stream, size = io.BytesIO(content), len(content)
    declared: list[tuple[Any, str, int]] = []

    def persistent(identity: Any) -> Any:
        declared.append(declared_storage(identity))
        return declared

    magic, version, machine = (read_pickle(stream, size, {}, None, budget) for _ in range(3))
    if (magic, version) != (MAGIC, VERSION) or type(machine) is not dict:
        raise RequestError("a tensor's data are not in torch's format")
    if machine.get("little_endian") is not True:
        raise RequestError("a tensor's data are in big-endian order")
    value = read_pickle(stream, size, STORAGE_NAMES, persistent, budget)
    keys = read_pickle(stream, size, {}, None, budget)
    if value is not declared or len(declared) != 1 or keys != [declared[0][1]]:
        raise RequestError("a tensor's data hold something else than one storage")
    dtype, _, count = declared[0]
    origin = stream.tell() + 8
    if stream.read(8) != struct.pack("<q", count) or size - origin != count * dtype.itemsize:
        raise RequestError("a tensor's data do not have the declared length")
    return Storage(dtype, count, lambda start, stop: content[origin + start : origin + stop])
