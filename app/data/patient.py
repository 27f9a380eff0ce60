"""What a DICOM header says of the patient and the window: for the screen, never for a log."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from engine.data.readers.dicom.values import silence_pydicom


def patient_lines(header: Any) -> tuple[str, ...]:
    """Name, number, birth date and sex, study date; what is missing is left out."""
    if header is None:
        return ()
    name = " ".join(re.sub(r"[\^=]+", " ", _text(header, "PatientName")).split())
    number = _text(header, "PatientID")
    birth = _date(_text(header, "PatientBirthDate"))
    study = _date(_text(header, "StudyDate"))
    sex = _text(header, "PatientSex")
    person = ", ".join(part for part in (birth and f"born {birth}", sex) if part)
    lines = (name, number and f"ID {number}", person, study and f"study {study}")
    return tuple(line for line in lines if line)


def window_of(header: Any) -> tuple[float, float] | None:
    """Centre and width of the first window in the header, if it is one."""
    if header is None:
        return None
    centre, width = _number(header, "WindowCenter"), _number(header, "WindowWidth")
    return (centre, width) if centre is not None and width is not None and width >= 1 else None


def _value(header: Any, keyword: str) -> Any:
    # Broken values make pydicom raise whatever comes to hand; they only cost their own line.
    try:
        with silence_pydicom():  # warnings quote values
            return header.get(keyword)
    except Exception:
        return None


def _text(header: Any, keyword: str) -> str:
    try:
        text = str(_value(header, keyword) or "")
    except Exception:  # text in a character set that it is not in
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _date(text: str) -> str:
    """20040119 as 2004-01-19; anything else as it is."""
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if re.fullmatch(r"[0-9]{8}", text) else text


def _number(header: Any, keyword: str) -> float | None:
    value = _value(header, keyword)
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = value[0] if value else None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
