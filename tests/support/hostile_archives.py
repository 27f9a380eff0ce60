"""Hostile files of torch.save, and files that are something else altogether."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile

import torch
from hostile_pickles import find, text, whole
from hostile_snapshots import Call, storage_blob
from import_cases import tiny_network


def saved(content, **options):
    stream = io.BytesIO()
    torch.save(content, stream, **options)
    return stream.getvalue()


def archive(entries, compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as target:
        for name, content in entries:
            target.writestr(name, content)
    return stream.getvalue()


def with_pickle(body, *more):
    """An archive of torch's layout around a pickle of our own."""
    return archive([("archive/data.pkl", whole(body, 2)), ("archive/version", b"3\n"), *more])


def tensor(key="0", count=b"K\x04", kind=None, shape=b"K\x04\x85", stride=b"K\x01\x85"):
    """Instructions for {'w': a tensor whose storage is the entry data/<key>}."""
    storage = b"(" + text("storage") + (kind or find("torch", "FloatStorage"))
    storage += text(key) + text("cpu") + count + b"tQ"
    rebuilt = find("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + b"K\x00" + shape
    rebuilt += stride + b"\x89" + find("collections", "OrderedDict") + b")RtR"
    return b"}" + text("w") + rebuilt + b"s"


def claimed(content, size):
    """The archive with another uncompressed size in the directory's first entry."""
    data = bytearray(content)
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", size)
    return bytes(data)


def huge_directory(count):
    """An archive that is nothing but a directory of the same entry again and again."""
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 6, *[0] * 3, 1, *[0] * 4, 0, 0) + b"x"
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) * count, 4, 0)
    return b"PK\x03\x04" + entry * count + end


def archive_corpus(canary):
    """Name -> bytes."""
    state = tiny_network()[0].state_dict()
    first = next(iter(state))
    shell = f"touch {canary}"
    run = Call(os.system, shell)
    good = saved(state)
    bomb = bytes(50 << 20)
    data = ("archive/data/0", bytes(16))
    files = {
        "system": saved({"a": run}),
        "system-beside-weights": saved({**state, "x": run}),
        "system-beside-ema": saved({"ema": state, "optimizer": run}),
        "system-in-other-entry-as-pickle": archive(
            [("archive/data.pkl", pickle.dumps(run, 2)), ("archive/other.pkl", b"")]
        ),
        "load-from-bytes": saved({"a": Call(torch.storage._load_from_bytes, pickle.dumps(run))}),
        "a-whole-module": saved(torch.nn.Linear(2, 2)),
        "a-device": saved({"a": torch.device("cpu")}),
        "compressed-bomb": archive(
            [("archive/data.pkl", bomb), ("archive/data/0", bomb)], zipfile.ZIP_DEFLATED
        ),
        "compressed-weights": archive(
            [("archive/data.pkl", whole(tensor(), 2)), ("archive/data/0", bomb)],
            zipfile.ZIP_LZMA,
        ),
        "claims-more-than-the-file": claimed(with_pickle(tensor(), data), 1 << 31),
        "many-entries": archive([(f"archive/data/{i}", b"") for i in range(20_001)]),
        "directory-huge": huge_directory(400_000),
        "archive-in-archive": archive([("archive/data.pkl", good)]),
        "two-pickles": archive([("a/data.pkl", whole(b"}", 2)), ("b/data.pkl", whole(b"}", 2))]),
        "no-pickle": archive([("archive/data/0", b"")]),
        "empty-archive": archive([]),
        "key-outside": with_pickle(tensor("../../../../etc/passwd"), data),
        "key-absolute": with_pickle(tensor("/etc/passwd"), data),
        "key-missing": with_pickle(tensor("7"), data),
        "key-not-text": with_pickle(tensor().replace(text("0"), b"K\x00"), data),
        "storage-huge": with_pickle(tensor(count=b"\x8a\x08" + struct.pack("<q", 1 << 60)), data),
        "storage-negative": with_pickle(tensor(count=b"J\xff\xff\xff\xff"), data),
        "storage-of-another-type": with_pickle(tensor(kind=find("posix", "system")), data),
        "storage-typed-by-text": with_pickle(tensor(kind=text("FloatStorage")), data),
        "shape-huge": with_pickle(tensor(shape=b"\x8a\x08" + struct.pack("<q", 1 << 60) + b"\x85")),
        "stride-zero": with_pickle(
            tensor(shape=b"J\xff\xff\xff\x7f\x85", stride=b"K\x00\x85"), data
        ),
        "persistent-id-text": with_pickle(text("posix.system") + b"Q"),
        "persistent-id-of-a-module": with_pickle(b"(" + text("module") + b"NNNNtQ"),
        "big-endian": with_pickle(tensor(), data, ("archive/byteorder", b"big")),
        "byteorder-huge": with_pickle(tensor(), data, ("archive/byteorder", bytes(1000))),
        "not-a-state-dict": saved([1, 2, 3]),
        "numbers-only": saved({"a": 1}),
        "another-network": saved({"layer.weight": torch.zeros(2, 2)}),
        "weights-nan": saved({**state, first: torch.full_like(state[first], float("nan"))}),
        "weights-whole-numbers": saved({k: v.to(torch.int64) for k, v in state.items()}),
        "weights-transposed": saved({k: v.transpose(0, -1) for k, v in state.items()}),
        "weights-empty": saved({k: torch.zeros(0) for k in state}),
        "weights-shared": saved(dict.fromkeys(state, torch.zeros(4))),
        "layers-absurd": saved({f"{k}.9999x9999_block0.conv0.weight": v for k, v in state.items()}),
        "resolution-zero": saved(
            {k.replace("8x8", "0x0").replace("4x4", "0x0"): v for k, v in state.items()}
        ),
        "truncated": good[: len(good) // 2],
        "directory-damaged": good[:-10],
        "only-signature": b"PK\x03\x04",
        "legacy": saved(state, _use_new_zipfile_serialization=False),
        "legacy-with-system": saved(run, _use_new_zipfile_serialization=False),
        "legacy-storage": storage_blob(pickle.dumps(run, 2)),
        "script": scripted(),
        "tar": tarred(pickle.dumps(run)),
        "text": b"import os; os.system('" + shell.encode() + b"')",
        "shell": b"#!/bin/sh\n" + shell.encode(),
        "gzip": b"\x1f\x8b\x08" + bytes(100),
        "json": json.dumps({"__reduce__": "os.system"}).encode(),
        "zeros": bytes(4096),
    }
    return {f"file-{name}": content for name, content in files.items()}


def scripted():
    """A TorchScript archive, which holds code to be compiled."""
    entries = [
        ("m/data.pkl", whole(b"c__torch__\nModule\n)\x81}b", 2)),
        ("m/code/__torch__.py", b""),
    ]
    return archive(entries)


def tarred(content):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as target:
        info = tarfile.TarInfo("pickle")
        info.size = len(content)
        target.addfile(info, io.BytesIO(content))
    return stream.getvalue()
