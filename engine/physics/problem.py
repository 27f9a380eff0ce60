"""A reconstruction problem: an operator and a measurement in a prior's units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from engine.physics.operator import Operator
from engine.physics.units import IntensityMap


@dataclass
class Problem:
    """min ||A x - y||^2_W seen through a prior.

    Everything is in the prior's normalised units; ``intensity`` leads back to HU or to the
    input's MR scale. ``reference`` is the true image when the input had one, and
    ``provenance`` says where the numbers came from (it goes to the run record).
    """

    operator: Operator
    measurement: Tensor
    intensity: IntensityMap
    modality: str  # 'CT' or 'MR'
    noise_sigma: Tensor | float = 0.0  # SD of the noise in `measurement`; [B, 1, 1, 1] if many
    noise_origin: str = ""  # how the noise is known: given, measured, estimated, simulated
    # how exactly the operator describes the scan, as a share of ||A||^2 in squared residuals
    model_error: float = 2.5e-8
    weights: Tensor | None = None  # statistical weights W, the shape of `measurement`
    reference: Tensor | None = None
    pixel_mm: tuple[float, float] | None = None  # (row, column) spacing
    slices: tuple[int, ...] = ()  # which slices of the input; by default 0, 1, ...
    provenance: dict[str, Any] = field(default_factory=dict)
    source: Any = None  # for whoever made it, to make it again in another prior's units

    def __post_init__(self) -> None:
        if not self.slices:
            self.slices = tuple(range(len(self.measurement)))

    def to(self, device: torch.device | str) -> Problem:
        self.operator = self.operator.to(device)
        self.measurement = self.measurement.to(device)
        self.weights = None if self.weights is None else self.weights.to(device)
        self.reference = None if self.reference is None else self.reference.to(device)
        if isinstance(self.noise_sigma, Tensor):
            self.noise_sigma = self.noise_sigma.to(device)
        return self

    def of_slice(self, number: int) -> Problem:
        """One of the slices; for operators that all slices share."""
        i = self.slices.index(number)
        noise, found = torch.as_tensor(self.noise_sigma), self.provenance.get("noise_found")
        return replace(
            self,
            measurement=self.measurement[i : i + 1],
            noise_sigma=noise[i : i + 1] if noise.numel() > 1 else self.noise_sigma,
            weights=None if self.weights is None else self.weights[i : i + 1],
            reference=None if self.reference is None else self.reference[i : i + 1],
            slices=(number,),
            provenance=self.provenance | ({"noise_found": found[i : i + 1]} if found else {}),
        )

    def residual(self, x: Tensor) -> Tensor:
        """A x - y."""
        return self.operator.forward(x) - self.measurement

    def measured(self) -> Tensor:
        """True for every number of the measurement that was measured and counts."""
        shown = torch.ones_like(self.measurement, dtype=torch.bool)
        sampled = self.operator.sampled()
        if sampled is not None:
            shown = shown & sampled.to(shown.device)
        return shown if self.weights is None else shown & (self.weights > 0)

    def reduced_chi2(self, residual: Tensor) -> Tensor:
        """Mean of W (A x - y)^2 / sigma^2 over what was measured, per slice; 0 without noise."""
        squares = residual.square() if self.weights is None else self.weights * residual.square()
        measured = self.measured()
        noise = torch.as_tensor(self.noise_sigma).reshape(-1).to(residual)
        mean = (squares * measured).flatten(1).sum(1) / measured.flatten(1).sum(1).clamp_min(1)
        return torch.where(noise > 0, mean / noise.square().clamp_min(1e-30), 0.0)

    def physical(self, x: Tensor) -> Tensor:
        """Normalised image to HU (CT) or the input's scale (MR)."""
        return self.intensity.to_physical(x)
