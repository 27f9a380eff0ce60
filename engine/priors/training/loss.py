"""The EDM training loss (Karras et al. 2022, eq. 2 and table 1) and the average of weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from engine.priors.precondition import Preconditioned


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
