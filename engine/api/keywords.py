"""Keywords: which there are, what they may hold, and errors that name them as Python does."""

from __future__ import annotations

import base64
import builtins
import difflib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from engine.data.source import parse_slices
from engine.spec.acquisition import CTAcquisition, MRIAcquisition, RestorationAcquisition
from engine.spec.errors import PYTHON, DualscopeError, RequestError, words
from engine.spec.settings import Settings

Slices = int | str | builtins.slice | None
SCANS: dict[str, tuple[type[Settings], ...]] = {
    "CT": (CTAcquisition, RestorationAcquisition),
    "MR": (MRIAcquisition, RestorationAcquisition),
}


@contextmanager
def in_keywords() -> Iterator[None]:
    """Sentences of the engine that name options name keywords instead."""
    try:
        yield
    except DualscopeError as error:
        error.args = (words(error, PYTHON), *error.args[1:])
        raise


def keywords_in(sentence: str) -> str:
    """Settings as keywords: ``cg_iterations``."""
    return words(sentence, PYTHON)


def warn(sentence: str) -> None:
    """At the line of whoever called us."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("engine.api."):
        level, frame = level + 1, frame.f_back
    warnings.warn(keywords_in(sentence), stacklevel=level)


def img(png: bytes) -> str:
    """A picture inside HTML."""
    return f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def known_names(groups: Iterable[type[Settings]]) -> set[str]:
    return {field.name for group in groups for field in fields(group)}


def refuse_unknown(given: Iterable[str], known: set[str], what: str) -> None:
    """Complain about a keyword nobody takes, and suggest the nearest."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), 1)
            rest = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(known))}."
            raise RequestError(f"{what} takes no keyword '{name}': {rest}")


def plain(value: Any) -> Any:
    """NumPy's numbers and paths as settings hold them."""
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def taken(given: dict[str, Any], groups: Iterable[type[Settings]]) -> dict[str, Any]:
    """Those of ``given`` that belong to the groups, as plain values."""
    known = known_names(groups)
    return {name: plain(value) for name, value in given.items() if name in known}


def slices_text(slices: Slices) -> str | None:
    """As the command line writes them: 'N' or 'A:B:S'."""
    if isinstance(slices, builtins.slice):
        parts = (slices.start, slices.stop, slices.step)
        return ":".join("" if part is None else str(part) for part in parts)
    return None if slices is None else str(slices)


def numbers_of(slices: Slices, count: int) -> tuple[int, ...]:
    return parse_slices(slices_text(slices), count)


def checked_seed(seed: Any) -> int:
    seed = plain(seed)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise RequestError(f"seed must be a whole number from 0 on, not {seed!r}.")
    return seed
