"""What numbers of CT files mean: units by name, counts as line integrals, water, and HU.

Total attenuation with coherent scattering, cm^2/g: J. H. Hubbell, S. M. Seltzer, NIST Standard
Reference Database 126. Between the energies the logarithms are interpolated; liquid water has
1 g/cm^3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.physics.units import MU_WATER_PER_MM
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

LEAST_TRANSMISSION = 1e-5  # a ray that lost everything; the integral is then 11.5


@dataclass(frozen=True)
class Rows:
    """The line integrals ``[views, detectors]`` of one slice, in the file's own order."""

    values: NDArray[np.float32]
    starved: int = 0  # rays whose transmission had to be raised to the least one


def from_transmission(transmission: NDArray) -> Rows:
    """Not-a-number stays what it is: the dataset says so, or calls the detector bin dead."""
    values = np.asarray(transmission, dtype=np.float64)
    low = values < LEAST_TRANSMISSION
    with np.errstate(invalid="ignore"):
        integrals = -np.log(np.where(low, LEAST_TRANSMISSION, values))
    return Rows(integrals.astype(np.float32), int(low.sum()))


def from_counts(counts: NDArray, flat: ArrayLike, dark: ArrayLike = 0.0) -> Rows:
    """A bin whose flat field is no brighter than its dark one is dead: not a number."""
    dark = np.asarray(dark, dtype=np.float64)
    light = np.asarray(flat, dtype=np.float64) - dark
    light = np.where(light > 0, light, np.nan)
    return from_transmission((np.asarray(counts, dtype=np.float64) - dark) / light)


CT_UNITS = ("hu", "mu", "mu-cm", "normalised")
KEV = (10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400, 500)
CM2_PER_G = (
    *(5.329, 1.673, 0.8096, 0.3756, 0.2683, 0.2269, 0.2059),
    *(0.1837, 0.1707, 0.1505, 0.1370, 0.1186, 0.1061, 0.09687),
)


def mu_water_per_mm(kev: float) -> float:
    return float(np.exp(np.interp(np.log(kev), np.log(KEV), np.log(CM2_PER_G)))) / 10


def water_of(options: InputOptions, file_kev: float | None = None) -> float:
    """What was told, else what the table says at the energy told or of the file, else at 70 keV."""
    if options.mu_water is not None:
        return options.mu_water
    energy = options.energy_kev or file_kev
    return MU_WATER_PER_MM if energy is None else mu_water_per_mm(energy)


def to_hu(options: InputOptions, unit: str | None = None) -> tuple[float, float]:
    """Scale and offset that lead from stored numbers to HU."""
    unit = unit or options.unit
    if unit in ("mu", "mu-cm"):
        per_mm = 0.1 if unit == "mu-cm" else 1.0
        return 1000 * per_mm / water_of(options), -1000.0
    return (1000.0 if unit == "normalised" else 1.0), 0.0  # HU = 1000 x is the engine's own map


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
