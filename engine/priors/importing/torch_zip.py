"""Checkpoints written by ``torch.save``: a zip archive with a pickle and one entry per storage.

The pickle is read by our own machine, which knows tensors and plain containers and nothing else,
and the numbers straight from their entries. ``torch.load`` is not involved, not even with
``weights_only=True``: it would load the whole file (optimiser states are twice the size of the
weights) and could not say as plainly what it refuses.

The storage of one tensor inside of another pickle.

A tensor that is pickled directly (not by ``torch.save``) carries its numbers as bytes for
``torch.storage._load_from_bytes``, which would unpickle them without any restriction: a pickle
in the pickle. Those bytes are a file of torch's old format: four pickles (a magic number, a
version, facts on the machine, the object), the list of storage keys, and for each key a count
and the numbers. All of them are read here by our own machine.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.files.budget import PartReader
from engine.priors.importing.bounds import Budget
from engine.priors.importing.safe_pickle import read_pickle
from engine.priors.importing.stored import (
    DTYPES,
    NUMPY_NAMES,
    Storage,
    StoredTensor,
    ordered_dict,
    rebuild_parameter,
    rebuild_tensor,
)
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


MOST_ENTRIES = 20_000
# of the archive's directory and of its pickle: both are far below a megabyte in practice
LARGEST_PART = 16 << 20
NAMES: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("collections", "OrderedDict"): ordered_dict,
    **NUMPY_NAMES,
    **STORAGE_NAMES,
}
# what the standard library raises for archives that are none
DAMAGE = (zipfile.BadZipFile, KeyError, RuntimeError, EOFError, OSError, ValueError, struct.error)
# signature, 22 bytes that the archive's directory repeats, lengths of the name and of padding;
# read directly because opening an archive for each of a thousand tensors takes long
LOCAL_HEADER = struct.Struct("<4s22xHH")
# where training programs put the weights, the averaged ones first
PLACES = ("ema", "model_ema", "net", "model", "state_dict", "ema_model")


def read_torch_zip(path: Path) -> tuple[str, dict[str, StoredTensor]]:
    """The place of the state dict in the file ('' for the file itself), and its tensors."""
    try:
        with (
            PartReader(path.open("rb", buffering=0), LARGEST_PART) as parts,
            zipfile.ZipFile(parts) as archive,
        ):
            folder = _checked(archive, path)
            entry = archive.getinfo(f"{folder}/data.pkl")
            if f"{folder}/byteorder" in archive.namelist():
                order = archive.getinfo(f"{folder}/byteorder")
                if order.file_size > 16 or archive.read(order) != b"little":
                    raise RequestError("its numbers are in big-endian order")
            if entry.file_size > LARGEST_PART:
                raise RequestError("its pickle is larger than any checkpoint's")
            with archive.open(entry) as stream:
                names = {info.filename: info for info in archive.infolist()}
                content = read_pickle(
                    stream,  # type: ignore[arg-type]
                    entry.file_size,
                    NAMES,
                    lambda identity: _storage(path, folder, names, identity),
                )
    except DAMAGE as error:
        raise RequestError(f"it is a damaged archive ({str(error)[:200]})") from None
    return _state_dict(content)


def _checked(archive: zipfile.ZipFile, path: Path) -> str:
    """The common folder of the entries, after the archive is found to be no bomb.

    torch stores entries without compression, so all of them together are smaller than the file.
    Anything else, overlapping entries included, is not a checkpoint.
    """
    entries = archive.infolist()
    if not entries or len(entries) > MOST_ENTRIES:
        raise RequestError(f"it is an archive of {len(entries)} entries, which is no checkpoint")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise RequestError(
                f"its entry '{entry.filename[:100]}' is compressed or encrypted, which torch "
                "never does"
            )
    total = sum(entry.file_size for entry in entries)
    if total > path.stat().st_size:
        raise RequestError(f"its entries claim {total} bytes, more than the file has")
    if len({entry.filename for entry in entries}) != len(entries):
        raise RequestError("two of its entries have the same name")
    folders = [e.filename[: -len("/data.pkl")] for e in entries if e.filename.endswith("/data.pkl")]
    if len(folders) != 1:
        raise RequestError("it is an archive, but not one written by torch.save")
    return folders[0]


def _storage(
    path: Path, folder: str, entries: Mapping[str, zipfile.ZipInfo], identity: Any
) -> Storage:
    dtype, key, count = declared_storage(identity)
    entry = entries.get(f"{folder}/data/{key}")
    if entry is None or entry.file_size != count * dtype.itemsize:
        raise RequestError("a tensor's data are missing or do not have the declared length")

    def load(start: int, stop: int) -> bytes:
        with path.open("rb") as stream:
            stream.seek(max(0, entry.header_offset))
            header = stream.read(LOCAL_HEADER.size)
            if len(header) != LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
                raise RequestError("it is a damaged archive (an entry has no header)")
            name, extra = LOCAL_HEADER.unpack(header)[-2:]
            stream.seek(name + extra + start, 1)
            return stream.read(stop - start)

    return Storage(dtype, count, load)


def _state_dict(content: Any) -> tuple[str, dict[str, StoredTensor]]:
    if type(content) is not dict:
        raise RequestError("it holds no state dict")
    for place in PLACES:
        if _is_state(content.get(place)):
            return place, content[place]
    if _is_state(content):
        return "", content
    raise RequestError(
        f"it holds no state dict, neither itself nor under one of {', '.join(PLACES)}"
    )


def _is_state(value: Any) -> bool:
    return (
        type(value) is dict
        and len(value) > 0
        and all(type(k) is str and type(v) is StoredTensor for k, v in value.items())
    )
