"""What a worker answers, as bytes and nothing else.

A fixed header (what it is, how many parts), the length of each part, the parts, and at the end
HMAC-SHA256 over all of it and over the hash of the parcel that is answered, with a key that was
in the parcel. So an answer belongs to these slices with these settings and nobody else's; parts
are a slice's file (its facts as JSON, the image as raw float32, its hash) or a sentence.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from typing import Any

from engine.workflows.cluster.payload import KEY_BYTES

MAGIC = b"DSanswer"
HEADER = struct.Struct("<8sII")  # magic, kind, number of parts
LENGTH = struct.Struct("<Q")
SLICES, REQUEST, MEMORY, ERROR = range(4)
MOST_PARTS = 1 << 16
SAID = 1000  # characters of a sentence
MOST_FACTS = 1 << 16  # bytes that a worker may say of itself


def pack_answer(kind: int, parts: list[bytes], key: bytes, parcel: bytes) -> bytes:
    head = HEADER.pack(MAGIC, kind, len(parts)) + b"".join(LENGTH.pack(len(p)) for p in parts)
    content = head + b"".join(parts)
    return content + _seal(content, key, parcel)


def unpack_answer(answer: Any, key: bytes, parcel_sha256: bytes) -> tuple[int, list[bytes]]:
    """Kind and parts, or `ValueError` for anything but an answer to this parcel."""
    size = hashlib.sha256().digest_size
    if not isinstance(answer, bytes) or len(answer) < HEADER.size + size:
        raise ValueError("no answer")
    content, seal = answer[:-size], answer[-size:]
    if not hmac.compare_digest(seal, _sealed(content, key, parcel_sha256)):
        raise ValueError("an answer to something else")
    magic, kind, count = HEADER.unpack_from(content)
    at = HEADER.size + count * LENGTH.size
    if magic != MAGIC or kind > ERROR or count > MOST_PARTS or at > len(content):
        raise ValueError("no answer")
    parts = []
    for (length,) in LENGTH.iter_unpack(content[HEADER.size : at]):
        parts.append(content[at : at + length])
        at += length
    if at != len(content):
        raise ValueError("an answer of another length")
    return kind, parts


def _seal(content: bytes, key: bytes, parcel: bytes) -> bytes:
    return _sealed(content, key, hashlib.sha256(parcel).digest())


def _sealed(content: bytes, key: bytes, parcel_sha256: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise ValueError("no key")
    return hmac.digest(key, parcel_sha256 + content, hashlib.sha256)


def pack_facts(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts).encode()


def unpack_facts(content: Any) -> dict[str, Any] | None:
    """What a worker says of itself; None for anything else."""
    if not isinstance(content, bytes) or len(content) > MOST_FACTS:
        return None
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None
