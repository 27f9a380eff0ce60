"""Pixels are squares and detector bins have a width, which the system matrix does not know.

Its rays are lines between samples of the image. In a real scan, and in one simulated on a finer
grid, a bin measures the mean over its width, and a pixel of the image is the mean over its square.
Seen along the detector, A blurs by the square of a pixel (variance 1/12 of a pixel squared) and by
its linear interpolation (1/6, shortened to the ray's cross-section), the detector by a bin (1/12 of
a bin squared). To second order in the frequency the difference is undone by

    A' = (1 - c D) A,   c = ((1/12 + m^2 / 6) r^2 - 1/12) / 2,   m = max(|cos|, |sin|),

with D the second difference along the detector and r the size of a pixel in bins.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.physics.operator import Operator, WrappedOperator

STRONGEST = 0.25  # bins much finer than pixels: the finest detail at most twice as strong


def second_difference(y: Tensor) -> Tensor:
    """Along the detector, as if the last bin went on beyond it: a symmetric matrix."""
    return torch.diff(pad(torch.diff(y), (1, 1)))


class ApertureCT(WrappedOperator):
    """``operator`` for data whose bins and pixels have a width; its adjoint is as exact."""

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        geometry = operator.geometry
        assert geometry is not None
        magnification = 1.0
        if geometry.source_origin_mm and geometry.source_detector_mm:
            magnification = geometry.source_detector_mm / geometry.source_origin_mm
        pixel = geometry.pixel_mm * magnification / geometry.pitch_mm
        angles = torch.tensor(geometry.angles_rad, dtype=torch.float64)
        across = torch.maximum(angles.cos().abs(), angles.sin().abs())
        strength = ((1 / 12 + across**2 / 6) * pixel**2 - 1 / 12) / 2
        self.strength = strength.clamp(max=STRONGEST).view(1, 1, -1, 1).to(operator.device)

    def _sharpen(self, y: Tensor) -> Tensor:
        return y - self.strength.to(y) * second_difference(y)

    def forward(self, x: Tensor) -> Tensor:
        return self._sharpen(self.operator.forward(x))

    def adjoint(self, y: Tensor) -> Tensor:
        return self.operator.adjoint(self._sharpen(y))

    def forward_once(self, x: Tensor) -> Tensor:
        return self._sharpen(self.operator.forward_once(x))

    def ray_lengths(self) -> Tensor:
        return self._sharpen(self.operator.ray_lengths())

    def normal(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        return Operator.normal(self, x, weights)

    def norm(self, iterations: int = 30) -> float:
        return Operator.norm(self, iterations)

    def describe(self) -> dict[str, Any]:
        return {**self.operator.describe(), "aperture": "second order"}
