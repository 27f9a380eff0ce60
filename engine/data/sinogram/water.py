"""The attenuation of water at an energy, and what stored numbers are in HU.

Total attenuation with coherent scattering, cm^2/g: J. H. Hubbell, S. M. Seltzer, NIST Standard
Reference Database 126. Between the energies the logarithms are interpolated; liquid water has
1 g/cm^3.
"""

from __future__ import annotations

import numpy as np

from engine.physics.units import MU_WATER_PER_MM
from engine.spec.input_options import InputOptions

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
