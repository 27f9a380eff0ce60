"""What a network is trained to do: the examples it sees, its loss, and what is said about it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from engine.priors.precondition import Preconditioned
from engine.priors.training.settings import TrainingSettings


class Objective(ABC):
    """The difference between training a denoiser and training anything else."""

    preconditioning: str
    preconditioning_kwargs: dict[str, Any]
    description: str
    validated: str  # what the validation measures
    heading: str  # of the column that names the rows of the validation
    sigma_range: tuple[float, float]

    @abstractmethod
    def example(self, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        """What ``loss`` needs beside the network, for a batch of clean images."""

    @abstractmethod
    def loss(self, network: Preconditioned, *example: Tensor) -> Tensor:
        """One number to make small."""

    def to_dict(self) -> dict[str, Any]:
        """Settings beyond TrainingSettings; two runs that differ in them are different runs."""
        return {}

    def facts(self) -> dict[str, str]:
        """Rows of the model card."""
        return {}


class Denoising(Objective):
    """D(x + noise; sigma) = x, at noise levels drawn from a log-normal distribution."""

    preconditioning = "edm"
    validated, heading = "Denoising PSNR", "sigma"

    def __init__(self, settings: TrainingSettings) -> None:
        self.settings = settings
        self.preconditioning_kwargs: dict[str, Any] = {}
        self.description = (
            f"Compact U-Net for {settings.modality.upper()} slices, trained as a denoiser."
        )
        # three standard deviations each way hold 99.7 % of what was seen
        low, high = (math.exp(settings.p_mean + k * settings.p_std) for k in (-3, 3))
        self.sigma_range = (float(f"{low:.2g}"), float(f"{high:.2g}"))

    def example(self, clean: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        settings = self.settings
        sigma = sample_sigma(len(clean), settings.p_mean, settings.p_std, generator)
        return clean, sigma, torch.randn(clean.shape, generator=generator)

    def loss(self, network: Preconditioned, *example: Tensor) -> Tensor:
        return edm_loss(network, *example)

    def facts(self) -> dict[str, str]:
        low, high = self.sigma_range
        return {"Noise levels": f"{low:g} to {high:g}"}


def sample_sigma(count: int, p_mean: float, p_std: float, generator: torch.Generator) -> Tensor:
    """Noise levels with ln sigma ~ N(p_mean, p_std^2), spread evenly over each batch.

    One draw per stratum of the distribution: every batch holds low and high levels, which
    makes the gradient of small batches much less noisy and leaves its mean unchanged.
    """
    uniform = (torch.arange(count) + torch.rand(count, generator=generator)) / count
    uniform = uniform[torch.randperm(count, generator=generator)].clamp(1e-6, 1 - 1e-6)
    return torch.exp(p_mean + p_std * math.sqrt(2) * torch.erfinv(2 * uniform - 1))


def edm_loss(denoiser: Preconditioned, clean: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    """Mean of (sigma^2 + sd^2) / (sigma sd)^2 * (D(clean + sigma noise; sigma) - clean)^2."""
    sd = denoiser.sigma_data
    s = sigma[:, None, None, None]
    weight = (s**2 + sd**2) / (s * sd) ** 2
    return (weight * (denoiser(clean + s * noise, sigma) - clean) ** 2).mean()


class WeightAverage:
    """An exponential moving average of parameters, short at first.

    The decay rises as (1 + t) / (10 + t), so that the first, untrained weights are forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.values = {name: p.detach().clone() for name, p in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        current = model.state_dict()
        torch._foreach_lerp_(
            list(self.values.values()), [current[n] for n in self.values], 1 - decay
        )
