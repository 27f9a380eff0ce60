"""What a field is called on the screen, and how its value is written there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from engine.spec.acquisition import CTAcquisition, MRIAcquisition, RestorationAcquisition
from engine.spec.errors import option_name, words
from engine.spec.input_options import InputOptions
from engine.spec.settings import Rule, Settings

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
