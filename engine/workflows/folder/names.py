"""Names: of a result's folder, which no input may choose freely, and of an input in the table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from engine.files.path_safety import DEVICE

LONGEST = 60
SAFE = re.compile(r"\w[\w-]{0,79}")


def safe_name(text: str) -> str:
    """A name as a folder's: letters, digits, '-' and '_', on every system.

    Without dots there is neither a way up nor a name that another file of ours could have.
    """
    words = (
        re.sub(r"[^\w-]+|--+", "-", unicodedata.normalize("NFC", text))
        .strip("-_")[:LONGEST]
        .rstrip("-_")
    )
    if not words or not SAFE.fullmatch(words):
        return "input"
    return f"{words}-input" if DEVICE.fullmatch(words) else words


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, with a number when another one has it; many systems take 'A' and 'a' for one."""
    used = {name.casefold() for name in taken}
    number, name = 1, wanted
    while name.casefold() in used:
        number += 1
        name = f"{wanted}-{number}"
    return name


def shown_name(name: str) -> str:
    """A name that may hold line breaks or bytes of no alphabet, as one line; no two are alike."""
    return "".join(
        sign
        if sign.isprintable() and sign != "\\"
        else sign.encode("unicode_escape", "surrogatepass").decode("ascii")
        for sign in name
    )
