"""Genuine EDM snapshots with one thing wrong in each."""

from __future__ import annotations

import collections
import functools
import os
import pickle
import struct

import torch
from edm_writer import Persistent, edm_snapshot, fake_modules, reconstruct
from hostile_pickles import find, whole
from import_cases import tiny_network


class Call:
    """Pickles as a call of anything."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


class Built:
    """Pickles as an allowed call with a state to be set on its result."""

    def __init__(self, function, arguments, state):
        self.value = (function, arguments, state)

    def __reduce__(self):
        return self.value


class NoStorage:
    """Pickles as ``torch.storage._load_from_bytes`` of bytes of our choice."""

    def __init__(self, content):
        self.content = content

    def __reduce__(self):
        return torch.storage._load_from_bytes, (self.content,)


# changes are made to the written tree, never to the network itself
shared_network = functools.cache(tiny_network)


def snapshot(change, module_src="# nothing"):
    """A genuine snapshot after ``change(dictionary)``, as bytes."""
    network, kwargs = shared_network()
    content = edm_snapshot(network, "SongUNet", dict(kwargs), module_src=module_src)
    result = change(content)
    content = content if result is None else result
    with fake_modules(torch_utils__persistence___reconstruct_persistent_obj=reconstruct):
        return pickle.dumps(content, 4)


def model_state(content):
    return content["ema"].meta["state"]["_modules"]["model"].meta["state"]


def put(value, *path):
    """Sets one entry of the network's state."""

    def change(content):
        state = model_state(content)
        for key in path[:-1]:
            state = state[key]
        state[path[-1]] = value

    return change


def layer(content):
    return model_state(content)["_modules"]["map_layer0"].meta["state"]["_parameters"]


def weight(value):
    """Replaces a layer's weight."""

    def change(content):
        layer(content)["weight"] = value(layer(content)["weight"])

    return change


class Tensor:
    """A tensor with a shape, stride and offset of our choice over a genuine storage."""

    def __init__(self, shape, stride, offset=0, count=64):
        self.values = (offset, shape, stride)
        self.storage = torch.zeros(count).__reduce_ex__(4)[1][0]

    def __reduce__(self):
        arguments = (self.storage, *self.values, False, collections.OrderedDict())
        return torch._utils._rebuild_tensor_v2, arguments


def storage_blob(
    content=None, count=4, declared=None, machine=None, kind=b"ctorch\nFloatStorage\n"
):
    """The bytes of a storage in torch's old format, or of something else in its place."""
    parts = [pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(1001, 2)]
    parts.append(machine or pickle.dumps({"little_endian": True, "protocol_version": 1001}, 2))
    number = b"\x8a\x08" + struct.pack("<q", count if declared is None else declared)
    identity = b"(X\x07\x00\x00\x00storage" + kind + b"X\x01\x00\x00\x00kX\x03\x00\x00\x00cpu"
    parts.append(content or b"\x80\x02" + identity + number + b"NtQ.")
    parts.append(pickle.dumps(["k"], 2))
    return b"".join(parts) + struct.pack("<q", count) + bytes(4 * count)


def snapshot_corpus(canary):
    """Name -> bytes of genuine snapshots with one thing wrong."""
    shell = f"touch {canary}"
    run = Call(os.system, shell)
    laughs = [1]
    for _ in range(40):
        laughs = [laughs, laughs]
    endless = {}
    endless["self"] = endless
    attack = pickle.dumps(run, 2)
    changes = {
        "system-in-kwargs": put(run, "_init_kwargs", "model_channels"),
        "system-in-state": put(run, "anything"),
        "system-in-parameters": weight(lambda w: run),
        "system-beside-ema": lambda c: c.update(loss_fn=run),
        "system-in-hooks": put({0: run}, "_forward_hooks"),
        "eval-in-kwargs": put(Call(eval, f"open({str(canary)!r}, 'w')"), "_init_kwargs", "x"),
        "nested-system": weight(lambda w: NoStorage(attack)),
        "nested-system-as-object": weight(lambda w: NoStorage(storage_blob(attack))),
        "nested-system-as-machine": weight(lambda w: NoStorage(storage_blob(machine=attack))),
        "nested-system-as-type": weight(
            lambda w: NoStorage(storage_blob(kind=b"cposix\nsystem\n"))
        ),
        "nested-storage-called": weight(
            lambda w: NoStorage(storage_blob(b"\x80\x02ctorch\nFloatStorage\n(K\x04tR."))
        ),
        "nested-build": weight(
            lambda w: NoStorage(storage_blob(b"\x80\x02ctorch\nFloatStorage\n}b."))
        ),
        "nested-huge": weight(lambda w: NoStorage(storage_blob(declared=1 << 60))),
        "nested-negative": weight(lambda w: NoStorage(storage_blob(declared=-4))),
        "nested-zip": weight(lambda w: NoStorage(b"PK\x03\x04" + bytes(64))),
        "nested-text": weight(lambda w: NoStorage("text")),
        "nested-empty": weight(lambda w: NoStorage(b"")),
        "nested-big-endian": weight(
            lambda w: NoStorage(storage_blob(machine=pickle.dumps({"little_endian": False}, 2)))
        ),
        "storage-as-weight": weight(lambda w: NoStorage(storage_blob())),
        "build-on-persistent": weight(
            lambda w: Built(reconstruct, ({"type": "class", "state": {}},), {"__class__": "x"})
        ),
        "build-on-tensor": weight(
            lambda w: Built(torch._utils._rebuild_tensor_v2, w.data.__reduce_ex__(4)[1], {"a": 1})
        ),
        "shape-negative": weight(lambda w: Tensor((-16, 8), (8, 1))),
        "shape-overflow": weight(lambda w: Tensor((1 << 62, 4), (1, 1))),
        "shape-beyond-64-bits": weight(lambda w: Tensor((1 << 200,), (1,))),
        "shape-product-overflow": weight(lambda w: Tensor((1 << 40, 1 << 40), (0, 0))),
        "shape-of-floats": weight(lambda w: Tensor((16.0, 8.0), (8, 1))),
        "shape-of-booleans": weight(lambda w: Tensor((True, True), (1, 1))),
        "shape-a-list": weight(lambda w: Tensor([16, 8], [8, 1])),
        "shape-text": weight(lambda w: Tensor("ab", "cd")),
        "shape-none": weight(lambda w: Tensor(None, None)),
        "shape-many-dimensions": weight(lambda w: Tensor((1,) * 1000, (1,) * 1000)),
        "stride-out-of-storage": weight(lambda w: Tensor((16, 8), (1 << 20, 1))),
        "stride-negative": weight(lambda w: Tensor((16, 8), (-8, 1), offset=60)),
        "stride-zero-expands": weight(lambda w: Tensor((1 << 30,), (0,))),
        "stride-count": weight(lambda w: Tensor((16, 8), (8,))),
        "stride-spread": weight(lambda w: Tensor((16, 8), (100, 10), count=4000)),
        "offset-beyond": weight(lambda w: Tensor((16, 8), (8, 1), offset=1 << 40)),
        "offset-negative": weight(lambda w: Tensor((16, 8), (8, 1), offset=-1)),
        "weights-nan": weight(lambda w: torch.full_like(w, float("nan"))),
        "weights-infinite": weight(lambda w: torch.full_like(w, float("-inf"))),
        "weights-whole-numbers": weight(lambda w: torch.zeros(w.shape, dtype=torch.int64)),
        "weights-complex": weight(lambda w: torch.zeros(w.shape, dtype=torch.complex64)),
        "weights-of-other-shape": weight(lambda w: torch.zeros(3, 3)),
        "weights-missing": weight(lambda w: None),
        "weights-text": weight(lambda w: "weights"),
        "weights-sparse": weight(lambda w: torch.eye(4).to_sparse()),
        "filter-tampered": lambda c: (
            model_state(c)["_modules"]["enc"]
            ._modules["4x4_down"]
            .meta["state"]["_modules"]["conv0"]
            .meta["state"]["_buffers"]
            .update(resample_filter=torch.full((1, 1, 2, 2), 7.0))
        ),
        "modules-a-list": put([], "_modules"),
        "modules-in-themselves": lambda c: model_state(c)["_modules"].update(
            again=c["ema"].meta["state"]["_modules"]["model"]
        ),
        "modules-endless": lambda c: model_state(c)["_modules"]["enc"]._modules.update(
            again=model_state(c)["_modules"]["enc"]
        ),
        "modules-of-text": put({"a": "b"}, "_modules"),
        "modules-with-dots": put({"a.b": Persistent("Linear", {})}, "_modules"),
        "state-missing": lambda c: c["ema"].meta.pop("state"),
        "state-text": lambda c: c["ema"].meta.update(state="text"),
        "class-unknown": lambda c: c["ema"].meta.update(class_name="os.system"),
        "class-not-text": lambda c: c["ema"].meta.update(class_name=["EDMPrecond"]),
        "network-unknown": lambda c: (
            c["ema"].meta["state"]["_modules"]["model"].meta.update(class_name="Unpickler")
        ),
        "kwargs-missing": put(None, "_init_kwargs"),
        "kwargs-laughs": put(laughs, "_init_kwargs", "channel_mult"),
        "kwargs-endless": put(endless, "_init_kwargs"),
        "kwargs-huge-number": put(1 << 300, "_init_kwargs", "model_channels"),
        "kwargs-huge-network": lambda c: model_state(c)["_init_kwargs"].update(
            model_channels=512, channel_mult=[8] * 2, num_blocks=8
        ),
        "kwargs-a-tensor": put(torch.zeros(2), "_init_kwargs", "channel_mult"),
        "sigma-data-a-tensor": lambda c: c["ema"].meta["state"].update(sigma_data=torch.ones(1)),
        "not-a-dict": lambda c: [c["ema"]],
        "no-ema": lambda c: {"G_ema": c["ema"]},
    }
    files = {f"snapshot-{name}": snapshot(change) for name, change in changes.items()}
    genuine = snapshot(lambda c: None)
    for i, part in enumerate((0.1, 0.35, 0.6, 0.85, 0.99)):
        files[f"snapshot-truncated-{i}"] = genuine[: int(part * len(genuine))]
    files["snapshot-followed-by-another"] = genuine + pickle.dumps(run, 4)
    files["snapshot-without-end"] = genuine[:-1]
    files["snapshot-nested-again-and-again"] = again_and_again()
    return files


def again_and_again():
    """One valid but costly nested pickle, written once and asked for a hundred thousand times."""
    costly = b"\x80\x02}(" + b"X\x0d\x00\x00\x00little_endian\x88X\x01\x00\x00\x00x]("
    content = storage_blob(machine=costly + b"N" * 100_000 + b"eu.")
    body = b"B" + struct.pack("<I", len(content)) + content + b"\x85q\x00"
    body += find("torch.storage", "_load_from_bytes") + b"q\x01"
    return whole(body + b"h\x01h\x00R" * 100_000)
