"""The same measurement of an image of fewer, larger pixels."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from engine.physics.ct import CTOperator
from engine.physics.operator import Operator, WrappedOperator


def coarse_operator(operator: Operator, factor: int) -> Operator:
    """Rays are traced anew through larger pixels; any other operator is shown wide images."""
    if not isinstance(operator, CTOperator):
        return CoarseOperator(operator, factor)
    geometry = operator.geometry
    height, width = geometry.image_size
    size = (height // factor, width // factor)
    coarse = dataclasses.replace(geometry, image_size=size, pixel_mm=factor * geometry.pixel_mm)
    return type(operator)(coarse, operator.device)


class CoarseOperator(WrappedOperator):
    """An operator on images whose pixels are ``factor`` times as large."""

    def __init__(self, operator: Operator, factor: int) -> None:
        super().__init__(operator)
        self.factor = factor
        channels, height, width = operator.image_shape
        self.image_shape = (channels, height // factor, width // factor)
        self.geometry = None
        self.is_projection = False

    def forward(self, x: Tensor) -> Tensor:
        wide = x.repeat_interleave(self.factor, -1).repeat_interleave(self.factor, -2)
        return self.operator.forward(wide)

    def adjoint(self, y: Tensor) -> Tensor:
        return self.factor**2 * F.avg_pool2d(self.operator.adjoint(y), self.factor)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        return F.avg_pool2d(self.operator.pseudo_inverse(y), self.factor)

    def support(self) -> Tensor | None:
        seen = self.operator.support()
        return None if seen is None else (F.avg_pool2d(seen, self.factor) > 0.5).to(seen.dtype)

    def forward_once(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def ray_lengths(self) -> Tensor:
        return Operator.ray_lengths(self)

    def normal(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        return Operator.normal(self, x, weights)

    def norm(self, iterations: int = 30) -> float:
        return Operator.norm(self, iterations)

    def proximal(self, *_: Any) -> Tensor | None:
        return None

    def preconditioner(self, rho: Tensor | float) -> None:
        return None
