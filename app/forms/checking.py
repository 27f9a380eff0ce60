"""Which field is wrong, and why: the engine's own sentence for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.forms.labels import on_screen
from engine.spec.errors import RequestError, named_in
from engine.spec.settings import Settings, parse_value, value_type

Check = Callable[[dict[str, Any]], object]  # raises RequestError


@dataclass(frozen=True)
class Wrong:
    """Text that is no value of its field; kept, so that nothing typed is lost."""

    text: str
    sentence: str


def read(cls: type[Settings], name: str, text: str) -> Any:
    """The value of typed text, None when it is empty, or Wrong."""
    text = text.strip()
    if not text:
        return None
    try:
        return parse_value(cls, name, text)
    except RequestError as error:
        if value_type(cls, name)[0] is int:
            try:  # 1e3 is a whole number too
                number = float(text)
                if number.is_integer():
                    return int(number)
            except (ValueError, OverflowError):
                pass
        return Wrong(text, on_screen(error))


def field_names(cls: type[Settings]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def find_faults(
    cls: type[Settings],
    values: Mapping[str, Any],
    recent: Sequence[str] = (),
    check: Check | None = None,
) -> dict[str, str]:
    """Sentence by field name; '' for one that names no field.

    When two fields contradict each other, the one edited last (``recent``, latest first) is
    the one marked.
    """
    names = field_names(cls)
    faults = {n: v.sentence for n, v in values.items() if isinstance(v, Wrong)}
    left = {n: v for n, v in values.items() if n not in faults}
    for _ in names:  # each round takes one culprit out
        try:
            cls(**left)
        except RequestError as error:
            culprit = _culprit(error, left, recent)
            faults[culprit] = on_screen(error)
            if not culprit:
                break
            del left[culprit]
        else:
            break
    if not faults and check is not None:
        try:
            check(dict(left))
        except RequestError as error:
            faults[_culprit(error, names, recent)] = on_screen(error)
    return faults


def _culprit(error: RequestError, names: Iterable[str], recent: Sequence[str]) -> str:
    named = set(named_in(error))
    candidates = [name for name in names if name in named]
    for name in recent:
        if name in candidates:
            return name
    return candidates[0] if candidates else ""
