"""Hostile pickles, instruction by instruction."""

from __future__ import annotations

import struct


def text(value):
    data = value.encode()
    return (
        b"\x8c" + bytes([len(data)]) + data
        if len(data) < 256
        else (b"X" + struct.pack("<I", len(data)) + data)
    )


def find(module, name):
    """STACK_GLOBAL of two strings."""
    return text(module) + text(name) + b"\x93"


def whole(body, protocol=4):
    return b"\x80" + bytes([protocol]) + body + b"."


def call(module, name, *arguments):
    return find(module, name) + b"(" + b"".join(arguments) + b"tR"


def raw_corpus(canary):
    """Name -> bytes of pickles written by hand."""
    shell = text(f"touch {canary}")
    code = text(f"open({str(canary)!r}, 'w').close()")
    system = call("posix", "system", shell)
    line = str(canary).encode()
    empty = call("collections", "OrderedDict")
    deep = 300_000
    forms = {
        "reduce-system": system + b"0}",
        "reduce-os-system": call("os", "system", shell),
        "reduce-eval": call("builtins", "eval", code),
        "reduce-exec": call("builtins", "exec", code),
        "reduce-import": call("builtins", "__import__", text("os")),
        "reduce-getattr": call("builtins", "getattr", text("os"), text("system")),
        "reduce-popen": call("subprocess", "Popen", shell),
        "reduce-runpy": call("runpy", "run_path", text(str(canary))),
        "reduce-open": call("io", "open", text(str(canary)), text("w")),
        "reduce-copyreg": call("copyreg", "_reconstructor", find("builtins", "object")),
        "reduce-newobj": call("copyreg", "__newobj__", find("builtins", "object")),
        "reduce-torch-load": call("torch.serialization", "load", text(str(canary))),
        "reduce-numpy-load": call("numpy", "load", text(str(canary))),
        "reduce-partial": call("functools", "partial", find("os", "system")),
        "reduce-attrgetter": call("operator", "attrgetter", text("system")),
        "global-text": b"cposix\nsystem\n(" + shell + b"tR",
        "global-builtin": b"c__builtin__\neval\n(" + code + b"tR",
        "global-no-name": b"cposix\n\n(tR",
        "names-computed": b"("
        + text("posix")
        + b"\x94"
        + text("system")
        + b"\x94th\x00h\x01\x93("
        + shell
        + b"tR",
        "names-not-text": b"C\x05posixC\x06system\x93",
        "names-numbers": b"K\x01K\x02\x93",
        "names-dotted": call("collections", "OrderedDict.__class__.__base__.__subclasses__"),
        "names-globals": call("torch._utils", "_rebuild_tensor_v2.__globals__.get"),
        "names-reexported": call("torch.os", "system", shell),
        "names-split-elsewhere": call("torch", "_utils._rebuild_tensor_v2"),
        "names-lookalike": call("torch_utils.persistence", "_reconstruct_persistent_obj "),
        "names-unicode": call("pоsix", "system", shell),
        "names-endless": b"c" + b"a" * 100_000 + b"\nb\n",
        "inst": b"(" + shell + b"iposix\nsystem\n",
        "obj": b"(" + find("collections", "OrderedDict") + shell + b"o",
        "newobj": find("posix", "system") + b"(" + shell + b"t\x81",
        "newobj-ex": find("collections", "OrderedDict") + b")}\x92",
        "newobj-arguments": find("torch.nn.modules.container", "ModuleDict") + b"K\x01\x85\x81",
        "persistent-text": b"Pposix.system\n",
        "persistent-binary": shell + b"Q",
        "ext1": b"\x82\x01",
        "ext2": b"\x83\x01\x00",
        "ext4": b"\x84\x01\x00\x00\x00",
        "call-a-string": shell + b")R",
        "call-a-dict": b"})R",
        "call-without-tuple": find("collections", "OrderedDict") + b"]R",
        "call-a-result": empty + b")R",
        "build-on-function": find("collections", "OrderedDict")
        + b"}"
        + text("__call__")
        + find("collections", "OrderedDict")
        + b"sb",
        "build-on-dict": empty + b"}" + text("__class__") + text("x") + b"sb",
        "build-on-list": b"]}b",
        "build-slots": empty + b"N}" + text("__setstate__") + text("x") + b"s\x86b",
        "memo-rebinding": find("collections", "OrderedDict")
        + b"q\x00"
        + text("handler")
        + find("builtins", "set")
        + b"sh\x00"
        + shell
        + b"\x85R",
        "memo-missing": b"h\x63",
        "memo-far": b"}r\xff\xff\xff\xffj\xfe\xff\xff\xff",
        "memo-mark": b"(q\x00",
        "memo-empty": b"q\x00",
        "mark-missing": b"t",
        "append-to-function": find("collections", "OrderedDict") + b"K\x01a",
        "setitem-on-function": find("collections", "OrderedDict") + text("x") + b"K\x01s",
        "setitem-on-list": b"]" + text("x") + b"K\x01s",
        "setitem-odd": b"}(" + text("x") + b"u",
        "key-tuple": b"})K\x01s",
        "key-list": b"}]K\x01s",
        "key-global": b"}" + find("collections", "OrderedDict") + b"K\x01s",
        "keys-colliding": b"}("
        + b"".join(
            b"\x8a\x0a" + (i * (2**61 - 1)).to_bytes(10, "little") + b"N" for i in range(1, 50_000)
        )
        + b"u",
        "set-of-lists": b"\x8f(]\x90",
        "set-of-numbers": call("builtins", "set", b"]K\x01a"),
        "ordered-dict-filled": call("collections", "OrderedDict", b"]" + b"K\x01K\x02\x86" + b"a"),
        "dtype-object": call("numpy", "dtype", text("O8"), b"\x89", b"\x88"),
        "dtype-record": call("numpy", "dtype", b"]"),
        "scalar-object": call("numpy.core.multiarray", "scalar", b"N", b"C\x01a"),
        "scalar-short": call(
            "numpy._core.multiarray", "scalar", call("numpy", "dtype", text("f8")), b"C\x04abcd"
        ),
        "codec-zip": call("_codecs", "encode", text("x"), text("zlib_codec")),
        "codec-names": call("_codecs", "encode", text("x"), b"]"),
        "persistence-of-text": call(
            "torch_utils.persistence", "_reconstruct_persistent_obj", shell
        ),
        "persistence-function": call(
            "torch_utils.persistence",
            "_reconstruct_persistent_obj",
            b"}" + text("type") + text("func") + b"s",
        ),
        "bytes-2^60": b"\x8e" + struct.pack("<Q", 1 << 60) + b"abc",
        "bytes-2^31": b"B" + struct.pack("<I", (1 << 31) - 1) + b"abc",
        "bytes-2^64": b"\x8e" + struct.pack("<Q", (1 << 64) - 1) + b"abc",
        "text-2^60": b"\x8d" + struct.pack("<Q", 1 << 60) + b"abc",
        "bytearray-2^60": b"\x96" + struct.pack("<Q", 1 << 60) + b"abc",
        "long-2^31": b"\x8b" + struct.pack("<i", (1 << 31) - 1) + b"abc",
        "long-negative": b"\x8b" + struct.pack("<i", -1),
        "number-of-digits": b"I" + b"9" * 200_000 + b"\n",
        "frame-2^60": b"\x95" + struct.pack("<Q", 1 << 60) + b"}",
        "text-not-utf8": b"\x8c\x02\xff\xfe",
        "deep-lists": b"]" * deep + b"a" * (deep - 1),
        "deep-tuples": b")" + b"\x85" * deep,
        "deep-records": find("torch_utils.persistence", "_reconstruct_persistent_obj")
        + b"q\x00"
        + text("type")
        + b"q\x01"
        + text("class")
        + b"q\x02"
        + text("state")
        + b"q\x03}q\x04"
        + b"h\x00}(h\x01h\x02h\x03h\x04u\x85Rq\x04" * 40_000,
        "flood-of-none": b"]" + b"(" + b"N" * 2_000_000 + b"e",
        "flood-of-marks": b"(" * 500_000,
        "flood-of-memo": b"}" + b"\x94" * 1_500_000,
        "two-values": b"}}",
        "no-value": b"",
        "nothing-under-ema": b"}" + text("ema") + b"Ns",
        "ema-is-text": b"}" + text("ema") + shell + b"s",
        "ema-is-itself": b"}q\x00" + text("ema") + b"h\x00s",
    }
    files = {f"raw-{name}": whole(body) for name, body in forms.items()}
    files["raw-protocol-200"] = whole(b"}", 200)
    files["raw-protocol-0"] = b"cposix\nsystem\n(S'touch " + line + b"'\ntR."
    files["raw-protocol-1"] = b"(cposix\nsystem\nX\x01\x00\x00\x00xo."
    files["raw-no-stop"] = b"\x80\x04}"
    files["raw-invalid-instruction"] = b"\x80\x04\xff."
    files["raw-empty"] = b""
    files["raw-one-byte"] = b"\x80"
    return files
