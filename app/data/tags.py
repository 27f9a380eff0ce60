"""The elements of a DICOM header as rows of text; runs off the GUI thread and knows no Qt."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from itertools import islice
from typing import Any, Final, NamedTuple

from engine.spec.errors import shown

MOST_ROWS: Final = 20_000
DEEPEST: Final = 8  # of sequences in sequences
LONGEST: Final = 400  # characters of a value
MASKED: Final = "***"
PATIENT_GROUP: Final = 0x0010
UNREADABLE: Final = "cannot be read"


class TagRow(NamedTuple):
    """``depth`` counts the sequences around it."""

    tag: str
    name: str
    vr: str
    value: str
    depth: int = 0


def tag_rows(header: Any, masked: bool = True) -> list[TagRow]:
    """All but the pixels; ``masked`` hides the patient's elements and every person's name.

    The header is a stranger's: what it says is quoted, cut to a length, and a value that makes
    pydicom stumble only costs its own row.
    """
    from engine.data.readers.dicom.values import silence_pydicom  # with pydicom: not at the start

    with silence_pydicom():  # warnings quote values
        return list(islice(_rows(header, masked, 0), MOST_ROWS))


def _rows(header: Any, masked: bool, depth: int) -> Iterator[TagRow]:
    for tag in sorted(header.keys()):
        number = f"({tag.group:04X},{tag.element:04X})"
        try:
            element = header[tag]
            name, vr = shown(element.name)[:LONGEST], shown(element.VR)[:2]
            inner = element.value if vr == "SQ" else None
            words = _words(element, vr, masked)
        except Exception:  # broken values make pydicom raise whatever comes to hand
            yield TagRow(number, "", "", UNREADABLE, depth)
            continue
        yield TagRow(number, name, vr, words, depth)
        for at, item in enumerate(inner or (), 1):
            if depth < DEEPEST:
                yield TagRow("", f"item {at}", "", "", depth + 1)
                yield from _rows(item, masked, depth + 1)


def _words(element: Any, vr: str, masked: bool) -> str:
    if vr == "SQ":
        count = len(element.value or ())
        return f"{count} item{'s' * (count != 1)}"
    if masked and element.value and (element.tag.group == PATIENT_GROUP or vr == "PN"):
        return MASKED
    value = element.value
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, MutableSequence):
        value = "\\".join(map(str, islice(value, LONGEST)))  # as DICOM writes several values
    text = shown(str(value if value is not None else "")[: LONGEST + 1])
    return f"{text[:LONGEST]} …" if len(text) > LONGEST else text
