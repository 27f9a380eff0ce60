"""Values of DICOM elements from their raw bytes, forgiving what broken files hold.

A value that is missing, of the wrong kind or not a finite number is None (or empty): the caller
says what that means. Nothing here can raise.
"""

from __future__ import annotations

import logging
import math
import struct
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pydicom
from pydicom.charset import convert_encodings, decode_bytes
from pydicom.datadict import dictionary_VR, tag_for_keyword
from pydicom.dataelem import RawDataElement

from engine.spec.errors import shown

logging.getLogger("pydicom").disabled = True  # for good: a log line can come at any time


@contextmanager
def silence_pydicom() -> Iterator[None]:
    """Its remarks quote values, which may be a patient's name: none of them is shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


BINARY = {"US": "H", "SS": "h", "UL": "I", "SL": "i", "FL": "f", "FD": "d", "UV": "Q", "SV": "q"}
TEXT = frozenset(
    ("AE", "AS", "CS", "DA", "DS", "DT", "IS", "LO", "LT", "SH", "ST", "TM", "UI", "UT")
)


def tags_of(keywords: Iterable[str]) -> dict[int, str]:
    """tag -> keyword, of public elements."""
    return {int(tag_for_keyword(word) or 0): word for word in keywords}


@dataclass(frozen=True, slots=True)
class Values:
    """Raw elements by keyword: (value representation or '', bytes)."""

    raw: dict[str, tuple[str, bytes]]
    little: bool = True

    def __contains__(self, keyword: str) -> bool:
        return keyword in self.raw

    def texts(self, keyword: str) -> list[str]:
        data = self.raw.get(keyword, ("", b""))[1]
        return [part.strip("\0 ") for part in data.decode("latin-1").split("\\")] if data else []

    def text(self, keyword: str) -> str:
        return "\\".join(self.texts(keyword))

    def numbers(self, keyword: str, signed: bool | None = None) -> tuple[float, ...]:
        """All of them, or none when one is no finite number.

        ``signed`` settles what DICOM leaves to PixelRepresentation ('US or SS').
        """
        if keyword not in self.raw:  # most are not, and a folder may have 20,000 files
            return ()
        vr, data = self.raw[keyword]
        if signed is not None and len(data) == 2:
            vr = "SS" if signed else "US"
        elif vr not in BINARY and vr not in TEXT:
            vr = _dictionary_vr(keyword)
        try:
            if vr in BINARY:
                count = len(data) // struct.calcsize(BINARY[vr])
                order = "<" if self.little else ">"
                values = struct.unpack_from(f"{order}{count}{BINARY[vr]}", data)
            else:
                values = tuple(float(part) for part in self.texts(keyword))
        except (struct.error, ValueError):
            return ()
        return values if all(map(math.isfinite, values)) else ()

    def number(self, keyword: str, signed: bool | None = None) -> float | None:
        values = self.numbers(keyword, signed)
        return float(values[0]) if values else None

    def integer(self, keyword: str, signed: bool | None = None) -> int | None:
        value = self.number(keyword, signed)
        return int(value) if value is not None and value == int(value) else None

    def vector(self, keyword: str, length: int) -> tuple[float, ...] | None:
        values = self.numbers(keyword)
        return values if len(values) == length else None

    def free_text(self, keyword: str) -> str:
        """In the file's character set: only for the screen, it may name a person."""
        data = self.raw.get(keyword, ("", b""))[1]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                encodings = convert_encodings(self.texts("SpecificCharacterSet") or [""])
                return shown(decode_bytes(data, encodings, set()).strip("\0 "))
        except (LookupError, UnicodeError, ValueError, AttributeError, TypeError):
            return shown(data.decode("utf-8", "replace").strip("\0 "))


def values_of(item: pydicom.Dataset, wanted: dict[int, str], little: bool) -> Values:
    """The wanted elements of a pydicom data set, as they were in the file."""
    raw = {}
    for tag, keyword in wanted.items():
        if tag not in item:
            continue
        element = item.get_item(tag)
        if isinstance(element, RawDataElement):
            raw[keyword] = (element.VR or "", element.value or b"")
        elif isinstance(getattr(element, "value", None), str | int | float):
            raw[keyword] = ("UT", str(element.value).encode())
        elif element.VR == "CS":  # pydicom has turned it into text already
            raw[keyword] = ("CS", "\\".join(map(str, element.value or [])).encode())
    return Values(raw, little)


@cache
def _dictionary_vr(keyword: str) -> str:
    tag = tag_for_keyword(keyword)
    return dictionary_VR(tag) if tag is not None else ""
