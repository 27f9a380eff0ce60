"""The prior N(m, s^2 I) and what the tests of sampling methods compute with it by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from helpers import FunctionPrior

from engine.physics.random import make_generator

MEAN, SD = 0.3, 0.7


def gaussian_prior(channels: int = 1) -> FunctionPrior:
    """Its exact denoiser: m + s^2 / (s^2 + sigma^2) (x - m)."""
    return FunctionPrior(lambda x, sigma: MEAN + SD**2 / (SD**2 + sigma**2) * (x - MEAN), channels)


def shrinking(sigma: float) -> float:
    return SD**2 / (SD**2 + sigma**2)


class Draws:
    """The noise a solver draws from ``make_generator(seed)``, one array after the other."""

    def __init__(self, shape: tuple[int, ...], seed: int = 0) -> None:
        self.shape, self.generator = shape, make_generator(seed)

    def __call__(self) -> Any:
        return torch.randn(self.shape, generator=self.generator, dtype=torch.float64).numpy()


def silence(monkeypatch: Any, *modules: str) -> None:
    """No noise in these solver modules: with a linear denoiser their mean over all runs is left."""
    for module in modules:
        monkeypatch.setattr(f"{module}.normal_like", lambda x, generator: torch.zeros_like(x))


def posterior_mean(a: Any, y: Any, noise: float, sd: float = SD) -> Any:
    """Of x ~ N(MEAN, sd^2 I) and y = a x + N(0, noise^2 I)."""
    n = a.shape[1]
    precision = a.T @ a / noise**2 + np.eye(n) / sd**2
    return np.linalg.solve(precision, a.T @ y / noise**2 + MEAN / sd**2 * np.ones(n))
