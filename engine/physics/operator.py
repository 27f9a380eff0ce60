"""The forward model A and what every solver may ask of it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
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
    part, part_axis : what a measurement consists of, and along which of its axes
    is_scan : whether it measures as a scanner does; a blurred image is none
    inverse_is_stable : A^+ amplifies noise by little, so that it may be applied exactly
    is_projection : its singular values are 0 and 1
    """

    image_shape: tuple[int, int, int]
    measurement_shape: tuple[int, int, int]
    geometry: CTGeometry | None = None
    part: str = "row"
    part_axis: int = -2
    is_scan: bool = True
    inverse_is_stable: bool = False
    is_projection: bool = False
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

    def forward_once(self, x: Tensor) -> Tensor:
        """A x to rounding, where nothing is worth preparing for a second product."""
        return self.forward(x)

    def ray_lengths(self) -> Tensor:
        """A 1, ``[1, M, P, Q]``: of a CT scan the length of each ray inside the image, in mm."""
        return self.forward(torch.ones(1, *self.image_shape, device=self.device))

    def sampled(self) -> Tensor | None:
        """Which numbers of a measurement are measured, broadcast to it; None: all."""
        return None

    def support(self) -> Tensor | None:
        """1 where the scan sees the image, 0 elsewhere, ``[B or 1, 1, H, W]``; None: everywhere."""
        return None

    def proximal(
        self, y: Tensor, v: Tensor, rho: Tensor | float, weights: Tensor | None = None
    ) -> Tensor | None:
        """argmin_x ||A x - y||^2_W + rho ||x - v||^2 in closed form, or None if there is none."""
        return None

    def normal(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """A^T W A x; an operator may know a shorter way than there and back."""
        y = self.forward(x)
        return self.adjoint(y if weights is None else weights * y)

    def preconditioner(self, rho: Tensor | float) -> Callable[[Tensor], Tensor] | None:
        """An approximate (A^T A + rho)^-1, for conjugate gradients; None: there is no quick one."""
        return None

    def norm(self, iterations: int = 30) -> float:
        """||A||, the largest singular value, by power iteration (computed once)."""
        if self._norm is None:
            generator = torch.Generator().manual_seed(0)
            x = torch.randn((1, *self.image_shape), generator=generator).to(self.device)
            for _ in range(iterations):
                x = x / x.norm()
                x = self.normal(x)
            self._norm = float(x.norm().sqrt())
        return self._norm

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")


class WrappedOperator(Operator):
    """Another operator, asked for everything that a subclass does not change."""

    FORWARDED = (
        *("image_shape", "measurement_shape", "geometry", "part", "part_axis"),
        *("is_scan", "inverse_is_stable", "is_projection"),
    )

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        for name in self.FORWARDED:
            setattr(self, name, getattr(operator, name))

    def forward(self, x: Tensor) -> Tensor:
        return self.operator.forward(x)

    def adjoint(self, y: Tensor) -> Tensor:
        return self.operator.adjoint(y)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        return self.operator.pseudo_inverse(y)

    def describe(self) -> dict[str, Any]:
        return self.operator.describe()

    def to(self, device: torch.device | str) -> Operator:
        self.operator = self.operator.to(device)
        return self

    def of_slice(self, i: int) -> Operator:
        one = copy.copy(self)
        one.operator = self.operator.of_slice(i)
        return one

    def forward_once(self, x: Tensor) -> Tensor:
        return self.operator.forward_once(x)

    def ray_lengths(self) -> Tensor:
        return self.operator.ray_lengths()

    def sampled(self) -> Tensor | None:
        return self.operator.sampled()

    def support(self) -> Tensor | None:
        return self.operator.support()

    def proximal(
        self, y: Tensor, v: Tensor, rho: Tensor | float, weights: Tensor | None = None
    ) -> Tensor | None:
        return self.operator.proximal(y, v, rho, weights)

    def normal(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        return self.operator.normal(x, weights)

    def preconditioner(self, rho: Tensor | float) -> Callable[[Tensor], Tensor] | None:
        return self.operator.preconditioner(rho)

    def norm(self, iterations: int = 30) -> float:
        return self.operator.norm(iterations)

    @property
    def device(self) -> torch.device:
        return self.operator.device
