"""Settings that describe, check and serialise themselves.

Each group is one frozen dataclass whose fields carry their help text and limits. The command
line, the form in the app and the run record are all made from these classes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Self

from engine.spec.errors import RequestError
from engine.spec.numbers import as_float

LONGEST_SHOWN = 80  # signs of a wrong value that a message repeats


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] = (),
    unit: str = "",
    before: Any = None,
) -> Any:
    """A field with its meaning and limits; ``above`` is a strict lower bound.

    ``before`` is what a record without this setting was made with, if that was not the default.
    """
    metadata = {
        "help": help,
        "low": low,
        "high": high,
        "above": above,
        "choices": choices,
        "unit": unit,
        "before": before,
    }
    return dataclasses.field(default=default, metadata=metadata)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


@functools.cache
def _type_hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def value_type(cls: type, field_name: str) -> tuple[type, bool]:
    """The plain type of a field and whether None is allowed (``float | None``)."""
    annotation = _type_hints(cls)[field_name]
    if isinstance(annotation, types.UnionType):
        plain = [a for a in typing.get_args(annotation) if a is not type(None)]
        return plain[0], True
    return annotation, False


@dataclass(frozen=True)
class Settings:
    """Base of every settings group: validation on construction, to_dict / from_dict."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            self._check(field)

    def _check(self, field: dataclasses.Field) -> None:
        value, limits = getattr(self, field.name), field.metadata
        name = f"⟦{field.name}⟧"
        wanted, optional = value_type(type(self), field.name)
        if value is None:
            if optional:
                return
            raise RequestError(f"{name} needs a value.")
        if limits.get("choices") and value not in limits["choices"]:
            known = ", ".join(limits["choices"])
            raise RequestError(f"{name} {_short(value)} is not known: choose one of {known}.")
        if wanted is bool:
            if not isinstance(value, bool):
                raise RequestError(f"{name} must be on or off, not {_short(value)}.")
            return
        if wanted in (int, float):
            self._check_number(name, value, wanted, limits)
        elif wanted is str and not isinstance(value, str):
            raise RequestError(f"{name} must be a text, not {_short(value)}.")

    @staticmethod
    def _check_number(name: str, value: Any, wanted: type, limits: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RequestError(f"{name} must be a number, not {_short(value)}.")
        if wanted is int and not isinstance(value, int):
            raise RequestError(f"{name} must be a whole number, not {value}.")
        if not math.isfinite(as_float(value)):
            raise RequestError(f"{name} must be a finite number, not {_short(value)}.")
        low, high, above = (limits.get(key) for key in ("low", "high", "above"))
        if low is not None and value < low:
            raise RequestError(f"{name} must be at least {low:g}, not {value:g}.")
        if above is not None and value <= above:
            raise RequestError(f"{name} must be greater than {above:g}, not {value:g}.")
        if high is not None and value > high:
            raise RequestError(f"{name} must be at most {high:g}, not {value:g}.")

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild from a record; unknown names are refused, missing ones take the default."""
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise RequestError(f"Unknown setting {_short(unknown[0])} for {cls.__name__}.")
        return cls(**values)

    @classmethod
    def recorded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The settings of a record, with those that did not exist when it was written."""
        fields = dataclasses.fields(cls)
        old = {f.name: b for f in fields if (b := f.metadata.get("before")) is not None}
        return old | values

    @classmethod
    def pick(cls, values: dict[str, Any]) -> Self:
        """Take from ``values`` what this group knows and ignore the rest."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})


def parse_value(cls: type[Settings], field_name: str, text: str) -> Any:
    """Turn typed text (``nfe=20``, ``dual=off``) into the field's value."""
    wanted, optional = value_type(cls, field_name)
    if optional and text.lower() in ("none", "auto"):
        return None
    if wanted is bool:
        if text.lower() in ("on", "true", "yes", "1"):
            return True
        if text.lower() in ("off", "false", "no", "0"):
            return False
        raise RequestError(f"⟦{field_name}⟧ must be on or off, not '{text}'.")
    if wanted in (int, float):
        try:
            return wanted(text)
        except ValueError:
            kind = "a whole number" if wanted is int else "a number"
            raise RequestError(f"⟦{field_name}⟧ must be {kind}, not '{text}'.") from None
    return text
