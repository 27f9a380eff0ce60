"""A process that opens no pickle but its own, while it is connected to a cluster.

Dask's messages may hold pickles anywhere: results, exceptions, events, even the type of a result.
Opening one runs what its author wrote. Here Dask's reading of messages is replaced: numbers, texts
and bytes are read (msgpack), whatever else came from another process becomes the text
``NOT_OPENED``. A scheduler in this process gets tasks from the client beside it as pickles; they
are known by their hash. Workers are other processes, and read all that they are sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import msgpack
from distributed.core import Status
from distributed.protocol import core
from distributed.protocol import pickle as dask_pickle
from distributed.protocol.compression import decompress
from distributed.protocol.serialize import Serialized, merge_and_deserialize, msgpack_decode_default
from distributed.protocol.utils import msgpack_opts

NOT_OPENED = "what another process sent as a pickle is not opened"
PLAIN = ("msgpack", "error")  # ways of writing that hold data only
MOST_KNOWN = 100_000  # a scheduler opens a task as soon as it has it

_loads, _dumps, _read = dask_pickle.loads, dask_pickle.dumps, core.loads
_known: OrderedDict[bytes, None] = OrderedDict()  # hashes of the pickles of this process
_guard = threading.RLock()
_open = 0


class ForeignPickle(TypeError):
    """Dask takes it for data that it cannot read, and says so to nobody else."""


def _hash(content: Any) -> bytes:
    return hashlib.blake2b(content, digest_size=32).digest()


def _own_dumps(*arguments: Any, **options: Any) -> bytes:
    content = _dumps(*arguments, **options)
    with _guard:
        _known[_hash(content)] = None
        while len(_known) > MOST_KNOWN:
            _known.popitem(last=False)
    return content


def _is_own(content: Any) -> bool:
    return isinstance(content, bytes | bytearray | memoryview) and _hash(content) in _known


def _own_loads(content: Any, **options: Any) -> Any:
    if not _is_own(content):
        raise ForeignPickle(NOT_OPENED)
    return _loads(content, **options)


def _never(*_: Any, **__: Any) -> Any:
    raise ForeignPickle(NOT_OPENED)


_PICKLE = SimpleNamespace(
    **{**vars(pickle), "loads": _own_loads, "load": _never, "Unpickler": _never}
)


def _plain_read(frames: Any, deserialize: bool = True, deserializers: Any = None) -> Any:
    """A message, as `distributed.protocol.loads` gives it, but for pickles of others."""

    def opened(found: dict[Any, Any]) -> Any:
        if "__Enum__" in found:  # Dask would import whatever module is named
            name = found.get("name")
            known = found.get("__name__") == Status.__name__ and name in Status.__members__
            return Status[str(name)] if known else NOT_OPENED
        if (at := found.get("__Serialized__", 0)) > 0:
            header, content = _part(frames, at, object_hook=msgpack_decode_default, use_list=False)
            if not deserialize:
                return Serialized(header, content)
            try:
                return merge_and_deserialize(
                    header, _expanded(header, content), deserializers=PLAIN
                )
            except Exception:  # whatever a stranger may have written
                return NOT_OPENED
        if (at := found.get("__Pickled__", 0)) > 0:
            header, content = _part(frames, at)
            if not _is_own(header["pickled-obj"]):
                return NOT_OPENED
            return _loads(header["pickled-obj"], buffers=_expanded(header, content))
        return msgpack_decode_default(found)

    return msgpack.loads(frames[0], object_hook=opened, use_list=False, **msgpack_opts)


def _part(frames: Any, at: int, **options: Any) -> tuple[dict[str, Any], Any]:
    """Header and content of what a message keeps beside it."""
    header = msgpack.loads(frames[at], **options, **(msgpack_opts if options else {}))
    return header, frames[at + 1 : at + 1 + header["num-sub-frames"]]


def _expanded(header: dict[str, Any], content: Any) -> Any:
    return decompress(header, content) if "compression" in header else content


_CHANGES: tuple[tuple[Any, Any], ...] = (
    (_loads, _own_loads),
    (_dumps, _own_dumps),
    (_read, _plain_read),
    (pickle, _PICKLE),
)


def _replace(changes: Iterable[tuple[Any, Any]]) -> None:
    """Under every name by which a module of Dask knows it."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("distributed") or module is dask_pickle:
            continue
        for known, value in list(vars(module).items()):
            for before, after in changes:
                if value is before:
                    setattr(module, known, after)
    for before, after in changes:  # its own names, but not the library that it stands on
        for known in ("loads", "dumps"):
            if getattr(dask_pickle, known) is before:
                setattr(dask_pickle, known, after)


@contextlib.contextmanager
def only_own_pickles() -> Iterator[None]:
    """For the whole process, until the last one that asked for it is done."""
    global _open
    with _guard:
        _open += 1
        if _open == 1:
            _replace(_CHANGES)
    try:
        yield
    finally:
        with _guard:
            _open -= 1
            if _open == 0:
                _replace([(after, before) for before, after in _CHANGES])
                _known.clear()
