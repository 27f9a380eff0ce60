"""Damage to files: to their bytes, and to the structures that the bytes stand for.

Everything is drawn from the generator it is given, so a case is known by its seed.
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import json
import pickletools
import random
import struct
import warnings
import zipfile
from typing import Any

NUMBERS = (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80")
TEXTS = (b"\xff\xfe\x80", b"99999999999", b"-1", b"nan", b"../../x", b"inf", b"1e308")
# what a program that trusts its files trips over
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        7,
        10**9,
        -(10**18),
        2**63,
        10**400,
        0.5,
        -0.0,
        1e308,
        5e-324,
    ),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "0", "x", "auto", "none", "\0", "a\0b"),
    *("\ud800", "\u202e\U0001f480", "x" * 300, "y" * 20_000, "../../x", "./../x", "..\\x", "/"),
    *("/dev/zero", "/dev/stdin", "/etc/passwd", "\\\\server\\share\\x.npy", "//server/share/x"),
    *("C:\\x.npy", "file:///etc/passwd", "./pipe", "./folder", "demo:", "demo:x", "__class__"),
    *("{0.__class__}", "%s%n", "$(touch alive)", "<script>", "1e999", "2:1", "0:9:0", "cuda:99"),
    *([], {}, [[]], [None], [1, 2, 3], {"": {}}, {"k": 1}, {"__class__": "x"}, [{}], "dc-pnpdp"),
)
NAMES = ("", "format", "__init__", "__dict__", "read", "write", "job", "input", "\0", "z" * 500)


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One to four damages of the kinds that disks, networks and enemies do."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not data:
            break
        # headers are short and come first: half of all damage goes there
        reach = len(data) if rng.random() < 0.5 else min(len(data), 2048)
        at = rng.randrange(reach)
        kind = rng.randrange(7)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            piece = rng.choice(NUMBERS)
            data[at : at + len(piece)] = piece
        elif kind == 3:
            data[at : at + rng.randrange(1, 64)] = b""
        elif kind == 4:
            data[at:at] = rng.randbytes(rng.randrange(1, 64))
        elif kind == 5:
            piece = rng.choice(TEXTS)
            data[at : at + len(piece)] = piece
        else:
            source = rng.randrange(len(data))
            data[at : at + 32] = data[source : source + 32]
    return bytes(data)


# -- JSON ---------------------------------------------------------------------------------------


def mutate_json(value: Any, rng: random.Random) -> Any:
    """A copy with one to three entries replaced, removed, added, repeated or exchanged."""
    body = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(body))
        if not places:
            return _value(rng)
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind <= 2:
            holder[key] = _value(rng)
        elif kind == 3:
            del holder[key]
        elif kind == 4:
            other_holder, other_key = rng.choice(places)
            if isinstance(other_holder, dict) or other_key < len(other_holder):
                holder[key] = json.loads(json.dumps(other_holder[other_key]))
        elif isinstance(holder, dict):
            holder[rng.choice(NAMES)] = _value(rng)
        else:
            holder.extend([holder[key]] * rng.choice((1, 3, 1200)))
    return body


def _value(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(VALUES))  # a list put in twice could come to hold itself


def _places(value: Any) -> Any:
    """Every entry as its container and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def damaged_json(value: Any, rng: random.Random) -> bytes:
    """Structure mutated (mostly), or the text: nesting, repeated keys, bytes."""
    kind = rng.randrange(10)
    if kind < 7:
        return json.dumps(mutate_json(value, rng)).encode()
    text = json.dumps(value)
    if kind == 7:
        depth = rng.choice((50, 900, 5000, 100_000))
        opening = rng.choice(("[", '{"a":'))
        closing = {"[": "]"}.get(opening, "}")
        bomb = opening * depth + "0" + closing * depth
        at = text.rfind(rng.choice(("{}", "0", '""', "1")))
        return (text[:at] + bomb + text[at + 1 :]).encode()
    if kind == 8 and isinstance(value, dict) and value:  # the last of two equal keys counts
        key = rng.choice(list(value))
        again = json.dumps({key: _value(rng)})
        return (text[:-1] + ", " + again[1:]).encode()
    return mutate(text.encode(), rng)


# -- checkpoints --------------------------------------------------------------------------------

OPCODES = (
    *(b"R", b"\x81", b"\x92", b"b", b"\x93", b"o", b"Q", b"(", b"t", b"0", b"2", b"s", b"u", b"a"),
    *(b"e", b"l", b"d", b"}", b"]", b")", b"N", b"\x88", b"h\x00", b"q\x00", b"\x94", b"."),
    *(
        b"cos\nsystem\n",
        b"cbuiltins\nexec\n",
        b"iposix\nsystem\n",
        b"\x82\x01",
        b"\x95" + b"\xff" * 8,
    ),
    *(b"\x8c\x05posix\x8c\x06system\x93", b"X\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 7 + b"\x0f"),
    b"\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch alive\x85R",
)


def mutate_pickle(content: bytes, rng: random.Random) -> bytes:
    """Whole instructions removed, repeated, exchanged, or put in from a list of bad ones."""
    pieces = list(_instructions(content))
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(pieces))
        kind = rng.randrange(5)
        if kind == 0 and len(pieces) > 1:
            del pieces[at]
        elif kind == 1:
            pieces.insert(at, pieces[rng.randrange(len(pieces))])
        elif kind == 2:
            other = rng.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == 3:
            pieces.insert(at, rng.choice(OPCODES))
        else:
            pieces[at] = rng.choice(OPCODES)
    return b"".join(pieces)


@functools.cache
def _instructions(content: bytes) -> tuple[bytes, ...]:
    starts = [position for _, _, position in pickletools.genops(content)]
    return tuple(content[a:b] for a, b in itertools.pairwise([*starts, len(content)]))


def mutate_zip(content: bytes, rng: random.Random) -> bytes:
    """The archive again with its pickle damaged, or entries renamed, lost, doubled or packed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = rng.randrange(len(entries))
    name, data = entries[at]
    kind, packing = rng.randrange(8), zipfile.ZIP_STORED
    if kind <= 3:
        at = next(i for i, (entry, _) in enumerate(entries) if entry.endswith("data.pkl"))
        entries[at] = (entries[at][0], mutate_pickle(entries[at][1], rng))
    elif kind == 4:
        entries[at] = (rng.choice(("../../x", "/x", "a\\b", ".", name + "x", name.upper())), data)
    elif kind == 5:
        entries[at : at + 1] = rng.choice(([], [(name, data)] * 2, [(name, data[:-1])]))
    elif kind == 6:
        packing = zipfile.ZIP_DEFLATED
    else:
        entries[at] = (name, mutate(data, rng))
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", packing) as archive:
        warnings.simplefilter("ignore")  # about names that occur twice
        for name, data in entries:
            archive.writestr(name, data)
    return stream.getvalue()


def mutate_safetensors(content: bytes, rng: random.Random) -> bytes:
    """The JSON header mutated, its length kept true or not; sometimes values inside metadata."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.get("__metadata__", {})
    if metadata and rng.random() < 0.5:  # must stay texts for the library, so say it in texts
        key = rng.choice(list(metadata))
        try:
            metadata[key] = json.dumps(mutate_json(json.loads(metadata[key]), rng))
        except (ValueError, TypeError):
            metadata[key] = str(_value(rng))
        text = json.dumps(header).encode()
    else:
        text = damaged_json(header, rng)
    said = len(text) if rng.random() < 0.9 else rng.choice((0, 1, len(text) - 1, 2**40, 2**64 - 1))
    return struct.pack("<Q", said) + text + (data if rng.random() < 0.9 else data[:-1])
