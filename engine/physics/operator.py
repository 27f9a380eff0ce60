"""The forward model A and what every solver may ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from engine.physics.geometry import CTGeometry


class Operator(ABC):
    """A linear map from images ``[B, C, H, W]`` to measurements ``[B, M, P, Q]``.

    Complex quantities are stored as pairs of real channels (real, imaginary), on both sides.
    Inner products are then real sums, and ``adjoint`` is the exact transpose of ``forward``
    for them; over the complex numbers this is the conjugate transpose.

    Attributes
    ----------
    image_shape : (C, H, W)
    measurement_shape : (M, P, Q)
    geometry : of a CT scan, whose measurement is (1, views, detectors); None of anything else
    """

    image_shape: tuple[int, int, int]
    measurement_shape: tuple[int, int, int]
    geometry: CTGeometry | None = None
    _norm: float | None = None

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """A x."""

    @abstractmethod
    def adjoint(self, y: Tensor) -> Tensor:
        """A^T y, the exact transpose of ``forward``."""

    @abstractmethod
    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """A quick image from the measurement: FBP, zero-filled, ..."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The geometry or mask as JSON-able values, for the run record."""

    def to(self, device: torch.device | str) -> Operator:
        """Move whatever the operator stores to a device; returns itself."""
        return self

    def of_slice(self, i: int) -> Operator:
        """The operator of slice ``i`` of the batch alone, where slices are measured differently."""
        return self

    def proximal(
        self, y: Tensor, v: Tensor, rho: Tensor | float, weights: Tensor | None = None
    ) -> Tensor | None:
        """argmin_x ||A x - y||^2_W + rho ||x - v||^2 in closed form, or None if there is none."""
        return None

    def norm(self, iterations: int = 30) -> float:
        """||A||, the largest singular value, by power iteration (computed once)."""
        if self._norm is None:
            generator = torch.Generator().manual_seed(0)
            x = torch.randn((1, *self.image_shape), generator=generator).to(self.device)
            for _ in range(iterations):
                x = x / x.norm()
                x = self.adjoint(self.forward(x))
            self._norm = float(x.norm().sqrt())
        return self._norm

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")
