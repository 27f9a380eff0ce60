"""When and why a field is disabled, from the values of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# The reason why a field is disabled, '' when it is not; from all values and the changed names.
Rule = Callable[[dict[str, Any], set[str]], str]


def only_with(name: str, wanted: Any, reason: str) -> Rule:
    """The field means something only while ``name`` has the value ``wanted``."""
    return lambda values, changed: "" if values.get(name) == wanted else reason


def only_if_given(name: str, reason: str) -> Rule:
    return lambda values, changed: "" if name in changed else reason


def excludes(name: str, own: str, reason: str) -> Rule:
    """Not while ``name`` is given; when both are, both stay open so that one can be cleared."""
    return lambda values, changed: reason if name in changed and own not in changed else ""
