"""What a prior is: a denoiser D(x; sigma) that knows its own units and origin."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from engine.physics.units import IntensityMap


@dataclass(frozen=True)
class PriorInfo:
    """A prior's metadata, shown to the user and written to every run record."""

    name: str
    channels: int
    intensity: IntensityMap
    native_size: int | None
    sigma_min: float
    sigma_max: float
    training_data: str
    licence: str
    sha256: str
    description: str = ""
    symmetric: bool = False  # knows mirrored and shifted images as well as others
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def analytic_info(
    name: str,
    description: str,
    intensity: IntensityMap,
    channels: int,
    details: dict[str, float],
) -> PriorInfo:
    """Metadata of a prior that is a formula: its hash is that of its parameters."""
    return PriorInfo(
        name=name,
        channels=channels,
        intensity=intensity,
        native_size=None,
        sigma_min=0.0,
        sigma_max=1000.0,
        training_data="none (analytic)",
        licence="Apache-2.0",
        sha256=hashlib.sha256(repr((name, channels, details)).encode()).hexdigest(),
        description=description,
        details=dict(details),
    )


class Prior(ABC):
    """A denoiser for images in normalised units: ``prior(x, sigma)`` estimates E[x0 | x]."""

    info: PriorInfo

    @abstractmethod
    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        """D(x; sigma) for a batch ``[B, C, H, W]`` at one noise level."""

    def anywhere(self) -> Prior:
        """The same without what belongs to places of one image."""
        return self

    def to(self, device: torch.device | str) -> Prior:
        return self
