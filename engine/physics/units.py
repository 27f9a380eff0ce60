"""HU, attenuation and a prior's normalised units.

With HU = a x + b and mu = mu_water (1 + HU / 1000), a line integral y = A mu becomes
y_n = A x = (y / mu_water - (1 + b / 1000) A 1) / (a / 1000),
where A 1 is the length of each ray inside the image grid; outside the grid there is air.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from engine.spec.errors import RequestError

AIR_HU = -1000.0
MU_WATER_PER_MM = 0.0192  # at about 70 keV, the effective energy of a 120 kVp beam


@dataclass(frozen=True)
class IntensityMap:
    """How a prior's numbers relate to physical ones.

    CT (``kind='hu'``): HU = scale * x + offset.
    MR (``kind='mr'``): intensity = scale * x, where ``scale`` belongs to the data (the 0.99
    quantile of the magnitude), so a prior itself carries scale 1.
    """

    kind: str
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("hu", "mr"):
            raise RequestError(f"Unknown intensity map '{self.kind}': expected 'hu' or 'mr'.")
        if not self.scale > 0:
            raise RequestError(f"The intensity scale must be positive, not {self.scale}.")

    def to_physical(self, x: Tensor) -> Tensor:
        return x * self.scale + self.offset

    def to_normalised(self, value: Tensor) -> Tensor:
        return (value - self.offset) / self.scale

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def hu_to_mu(hu: Tensor, mu_water: float = MU_WATER_PER_MM) -> Tensor:
    return mu_water * (1 + hu / 1000)


def mu_to_hu(mu: Tensor, mu_water: float = MU_WATER_PER_MM) -> Tensor:
    return 1000 * (mu / mu_water - 1)


def normalise_line_integrals(
    y: Tensor, ray_lengths: Tensor, intensity: IntensityMap, mu_water: float = MU_WATER_PER_MM
) -> Tensor:
    """Physical line integrals to the prior's units; ``ray_lengths`` is A 1 in mm."""
    water = (1 + intensity.offset / 1000) * ray_lengths
    return (y / mu_water - water) / (intensity.scale / 1000)


def physical_line_integrals(
    y_n: Tensor, ray_lengths: Tensor, intensity: IntensityMap, mu_water: float = MU_WATER_PER_MM
) -> Tensor:
    """The inverse of ``normalise_line_integrals``."""
    water = (1 + intensity.offset / 1000) * ray_lengths
    return mu_water * (y_n * (intensity.scale / 1000) + water)


def noise_scale(intensity: IntensityMap, mu_water: float = MU_WATER_PER_MM) -> float:
    """Factor from the SD of physical line integrals to that of normalised ones."""
    return 1000 / (intensity.scale * mu_water)
