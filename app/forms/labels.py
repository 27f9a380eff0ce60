"""What a field is called on the screen, how its value is written, and what is wrong with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.spec.acquisition import CTAcquisition, MRIAcquisition, RestorationAcquisition
from engine.spec.errors import RequestError, named_in, option_name, words
from engine.spec.input_options import InputOptions
from engine.spec.settings import Rule, Settings, parse_value, value_type

AUTOMATIC = "automatic"

# What sentences speak of that is no setting of a form; the forms' own stand beside the settings.
_LABELS = {
    "deidentify": "Leave out all names",
    "slice": "Slices",
    "solver": "Method",
    "prior": "Prior",
    "device": "Device",
    "seed": "Seed",
    "workers": "Processes",
    "tls_ca": "TLS authority",
    "tls_cert": "TLS certificate",
    "tls_key": "TLS key",
}


def learn(cls: type[Settings]) -> None:
    """Take the labels of a form's settings; those of the methods come when the engine is loaded."""
    for field in dataclasses.fields(cls):
        _LABELS[field.name] = field.metadata["label"] or _in_words(field.name)


def _in_words(name: str) -> str:
    words = name.removesuffix("_mm").replace("_", " ")
    return words[:1].upper() + words[1:]


for _form in (InputOptions, CTAcquisition, MRIAcquisition, RestorationAcquisition):
    learn(_form)

# Symbols people read faster than the file's spelling.
UNITS = {"deg": "°", "1/mm": "mm⁻¹"}
CHOICES = {
    "auto": AUTOMATIC,
    "ccw": "counter-clockwise",
    "cw": "clockwise",
    "sh": "homogenized (sh)",
    "admm": "ADMM",
    "fista": "FISTA",
    "sense": "a map per coil",
    "combine": "one virtual coil",
    "fov": "cycles per field of view",
    "pixel": "cycles per pixel",
    "radian": "radians per pixel",
}


BLANKS = {
    "photons": "no noise",
    **dict.fromkeys(("scan_air_bins", "scan_rings", "scan_hardening"), "off"),
    "scan_scale": "1",
}  # what an empty field means, where it is not 'automatic'


def blank_of(name: str) -> str:
    return BLANKS.get(name, AUTOMATIC)


def label_of(name: str) -> str:
    return _LABELS.get(name) or _in_words(name)


def unit_of(unit: str) -> str:
    return UNITS.get(unit, unit)


def choice_of(value: str) -> str:
    return CHOICES.get(value, value)


def text_of(value: Any) -> str:
    """A value as it would be typed; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def on_screen(said: str | BaseException, own: Mapping[str, str] | None = None) -> str:
    """A sentence of the engine in the window's words; ``own`` are the labels of a single page."""

    def label(name: str) -> str:
        if own and name in own:
            return f"“{own[name]}”"
        return f"“{_LABELS[name]}”" if name in _LABELS else option_name(name)

    return words(said, label)


def rules_of(cls: type[Settings]) -> dict[str, Rule]:
    """When which field of a settings class is disabled, and why."""
    fields = dataclasses.fields(cls)
    return {field.name: field.metadata["rule"] for field in fields if field.metadata["rule"]}


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
