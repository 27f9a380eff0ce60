"""Noise levels from sigma_max down to sigma_min (Karras et al. 2022, rho = 7)."""

from __future__ import annotations


def karras_sigmas(steps: int, sigma_max: float, sigma_min: float, rho: float = 7.0) -> list[float]:
    """``steps`` levels, first sigma_max, last sigma_min; dense where the noise is low."""
    if steps == 1:
        return [float(sigma_max)]
    high, low = sigma_max ** (1 / rho), sigma_min ** (1 / rho)
    return [(high + i / (steps - 1) * (low - high)) ** rho for i in range(steps)]
