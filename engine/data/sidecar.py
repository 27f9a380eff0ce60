"""The JSON file beside an input that says what the input itself does not.

Its keys are those of ``InputOptions`` and a few that are too long for a command line. What a
person says on the command line or in the app counts more.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.files.budget import read_json
from engine.spec.errors import RequestError, Sentence, marked
from engine.spec.input_options import PATH_OPTIONS, InputOptions
from engine.spec.settings import value_type

MAX_BYTES = 16 << 20
MAX_VALUES = 1_000_000
# a file does not say where it may reach: that is for the person alone
OPTIONS = {field.name for field in dataclasses.fields(InputOptions)} - set(PATH_OPTIONS)
EXTRA = {"angles_deg", "shape", "dtype", "byte_order", "flat", "dark", "bad_bins", "comment"}
DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32")


@dataclass(frozen=True)
class Described:
    """Options and sidecar together, and which of the two each value came from."""

    options: InputOptions
    sidecar: Path | None = None
    from_sidecar: frozenset[str] = frozenset()
    angles_deg: tuple[float, ...] | None = None
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    byte_order: str = "little"
    flat: float | NDArray | None = None
    dark: float | NDArray | None = None
    bad_bins: tuple[int, ...] = ()  # of the detector, counted from 0 in the file's order

    def origin(self, name: str) -> str:
        if self.sidecar is not None and name in self.from_sidecar:
            return self.sidecar.name
        return Sentence(f"option ⟦{name}⟧")


def describe(path: Path, options: InputOptions) -> Described:
    """What is known of ``path``: its sidecar, if there is one, under the person's options."""
    sidecar = _find(path, options)
    if sidecar is None:
        return Described(options)
    values = _read_object(sidecar)
    known = OPTIONS | EXTRA
    if options.sidecar is None and not known & set(values):
        return Described(options)  # some other program's file that happens to have this name
    for key in values:
        if key not in known:
            raise RequestError(f"{sidecar.name}: the key '{key[:40]}' is not known.")
    said = {key: values[key] for key in OPTIONS & set(values) if values[key] is not None}
    _check_texts(sidecar, said)
    typed = {k: v for k, v in options.to_dict().items() if v is not None}
    try:
        InputOptions.from_dict(said)
        merged = InputOptions.from_dict({**said, **typed})
    except (RequestError, OverflowError) as error:
        raise RequestError(f"{sidecar.name}: {marked(error)}") from None
    return Described(
        options=merged,
        sidecar=sidecar,
        from_sidecar=frozenset(set(values) - set(typed)),
        angles_deg=_numbers(sidecar, "angles_deg", values.get("angles_deg")),
        shape=_shape(sidecar, values.get("shape")),
        dtype=_choice(sidecar, "dtype", values.get("dtype", "float32"), DTYPES),
        byte_order=_choice(
            sidecar, "byte_order", values.get("byte_order", "little"), ("little", "big")
        ),
        flat=_level(sidecar, "flat", values.get("flat")),
        dark=_level(sidecar, "dark", values.get("dark")),
        bad_bins=_bins(sidecar, values.get("bad_bins")),
    )


def _find(path: Path, options: InputOptions) -> Path | None:
    if options.sidecar is not None:
        chosen = Path(options.sidecar)
        if not chosen.is_file():
            raise RequestError(f"⟦sidecar⟧ {options.sidecar}: there is no such file.")
        return chosen
    beside = sidecar_of(path)
    return beside if beside.is_file() and beside != path else None


def sidecar_of(path: Path) -> Path:
    """Where the sidecar of an input lies, if it has one."""
    return path.with_name(path.name + ".json") if path.is_dir() else path.with_suffix(".json")


def _read_object(path: Path) -> dict[str, Any]:
    values = read_json(path, MAX_BYTES, "a sidecar", strict=True)
    if not isinstance(values, dict):
        raise RequestError(f"{path.name} is not a JSON object of keys and values.")
    return values


def _check_texts(path: Path, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if value_type(InputOptions, key)[0] is str and not isinstance(value, str):
            raise RequestError(f"{path.name}: '{key}' must be a text.")


def _numbers(path: Path, key: str, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    wrong = RequestError(f"{path.name}: '{key}' must be a list of numbers.")
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_VALUES:
        raise wrong
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in value):
        raise wrong
    try:
        numbers = tuple(float(v) for v in value)
    except OverflowError:
        raise wrong from None
    if not np.isfinite(numbers).all():
        raise wrong
    return numbers


def _shape(path: Path, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or not 1 <= len(value) <= 4
        or not all(type(v) is int and 1 <= v <= 1 << 31 for v in value)
    ):
        raise RequestError(f"{path.name}: 'shape' must be one to four whole numbers.")
    return tuple(value)


def _bins(path: Path, value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(type(v) is int and 0 <= v < 1 << 31 for v in value):
        raise RequestError(f"{path.name}: 'bad_bins' must be a list of bin numbers from 0.")
    return tuple(value)


def _choice(path: Path, key: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise RequestError(f"{path.name}: '{key}' must be one of {', '.join(choices)}.")
    return str(value)


def _level(path: Path, key: str, value: Any) -> float | NDArray | None:
    """A number, one per detector bin, or the name of a .npy file in the same folder."""
    if value is None:
        return None
    if isinstance(value, str):
        return _level_file(path, key, value)
    if isinstance(value, list):
        return np.array(_numbers(path, key, value))
    single = _numbers(path, key, [value])
    assert single is not None
    return single[0]


def _level_file(path: Path, key: str, name: str) -> NDArray:
    from engine.data.readers.npy import read_npy

    target = path.parent / name
    outside = "/" in name or "\\" in name or name in ("", ".", "..")
    if outside or "\0" in name or target.resolve().parent != path.parent.resolve():
        raise RequestError(f"{path.name}: '{key}' must name a .npy file in the same folder.")
    if not target.is_file():
        raise RequestError(f"{path.name}: '{key}' names a file that does not exist.")
    level = read_npy(target)
    if level.ndim not in (1, 2) or level.dtype.kind not in "fiu" or level.size > MAX_VALUES:
        raise RequestError(f"{target.name} must hold numbers [detectors] or [slices, detectors].")
    return np.array(level, dtype=np.float64)
