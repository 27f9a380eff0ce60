"""Unit names that files write beside their lengths and angles."""

from __future__ import annotations

import math

from engine.spec.errors import RequestError

LENGTHS_MM = {
    "m": 1e3,
    "meter": 1e3,
    "metre": 1e3,
    "cm": 10.0,
    "mm": 1.0,
    "um": 1e-3,
    "µm": 1e-3,
    "μm": 1e-3,
    "micron": 1e-3,
    "micrometer": 1e-3,
    "micrometre": 1e-3,
    "nm": 1e-6,
    "angstrom": 1e-7,
    "å": 1e-7,
}
ANGLES_DEG = {
    "deg": 1.0,
    "degree": 1.0,
    "°": 1.0,
    "rad": math.degrees(1.0),
    "radian": math.degrees(1.0),
}


ENERGIES_KEV = {"ev": 1e-3, "kev": 1.0, "mev": 1e3}


def millimetres(unit: str, name: str) -> float:
    """How many mm the unit is."""
    return _lookup(LENGTHS_MM, unit, name, "length")


def degrees(unit: str, name: str) -> float:
    return _lookup(ANGLES_DEG, unit, name, "angle")


def kiloelectronvolts(unit: str, name: str) -> float:
    return _lookup(ENERGIES_KEV, unit, name, "energy")


def _lookup(table: dict[str, float], unit: str, name: str, what: str) -> float:
    key = unit.strip().lower()
    for candidate in (key, key.removesuffix("s")):
        if candidate in table:
            return table[candidate]
    raise RequestError(f"{name}: '{unit[:20]}' is not a unit of {what} that is known here.")
