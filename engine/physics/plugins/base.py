"""What the operators on foreign projectors have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from engine.physics.ct import LinearMap, check_shape
from engine.physics.fbp import fbp
from engine.physics.geometry import CTGeometry
from engine.physics.operator import Operator


class PluginOperator(Operator):
    """An operator whose projections another package computes, in float32.

    FBP is our own: packages differ in scaling, padding and kernel, and a starting image should
    not depend on who projects.
    """

    geometry: CTGeometry
    backend: str
    projector: str
    part = "view"

    def __init__(
        self,
        geometry: CTGeometry,
        device: torch.device | str,
        filter_name: str = "ramp",
        weighting: str = "mean",
    ) -> None:
        self.geometry = geometry
        self.filter_name = filter_name
        self.weighting = weighting
        self.image_shape = (1, *geometry.image_size)
        self.measurement_shape = (1, geometry.views, geometry.detectors)
        self._device = torch.device(device)

    @property
    def device(self) -> torch.device:
        return self._device

    def to(self, device: torch.device | str) -> PluginOperator:
        self._device = torch.device(device)
        return self

    @abstractmethod
    def _project(self, x: Tensor) -> Tensor:
        """Line integrals in mm of a batch of the right shape."""

    @abstractmethod
    def _back_project(self, y: Tensor) -> Tensor:
        """Their transpose, or what the package offers for it."""

    def forward(self, x: Tensor) -> Tensor:
        check_shape(x, self.image_shape, "image")
        return LinearMap.apply(x, self._project, self._back_project)

    def adjoint(self, y: Tensor) -> Tensor:
        check_shape(y, self.measurement_shape, "sinogram")
        return LinearMap.apply(y, self._back_project, self._project)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """Filtered back-projection."""
        check_shape(y, self.measurement_shape, "sinogram")
        return fbp(y.float(), self.geometry, self.filter_name, self.weighting)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "ct",
            "backend": self.backend,
            "geometry": self.geometry.to_dict(),
            "geometry_fingerprint": self.geometry.fingerprint(),
            "projector": self.projector,
            "dtype": "float32",
            "fbp": {"filter": self.filter_name, "weighting": self.weighting},
        }
