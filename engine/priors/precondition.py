"""From a network F to a denoiser D(x; sigma): how input, output and noise level are scaled.

Each wrapper is an ``nn.Module`` with the network as its child ``model`` (so that parameters are
named ``model.*``, as in public checkpoints) and is called as ``denoiser(x, sigma)``. A further
one is added by writing its class and naming it in ``PRECONDITIONINGS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from engine.errors import RequestError


class Preconditioned(nn.Module, ABC):
    """A denoiser D(x; sigma) around a network; sigma is one number or one per sample."""

    def __init__(self, model: nn.Module, sigma_data: float = 0.5) -> None:
        super().__init__()
        self.model = model
        self.sigma_data = sigma_data

    def forward(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        levels = torch.as_tensor(sigma, dtype=torch.float32, device=x.device).reshape(-1)
        return self.denoise(x.float(), levels.expand(x.shape[0]))

    @abstractmethod
    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        """D for a float32 batch ``[B, C, H, W]`` and levels ``[B]``."""


class EDMPreconditioned(Preconditioned):
    """D = c_skip x + c_out F(c_in x, c_noise), Karras et al. 2022, table 1.

    The network sees unit variance at every level and is asked for a target of unit variance;
    ``sigma_data`` is the standard deviation of clean pixels.
    """

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        s = sigma[:, None, None, None]
        variance = s**2 + self.sigma_data**2
        c_skip = self.sigma_data**2 / variance
        c_out = s * self.sigma_data / variance.sqrt()
        c_in = 1 / variance.sqrt()
        c_noise = sigma.log() / 4
        return c_skip * x + c_out * self.model(c_in * x, c_noise).float()


PRECONDITIONINGS: dict[str, type[Preconditioned]] = {"edm": EDMPreconditioned}


def precondition(name: str, model: nn.Module, sigma_data: float) -> Preconditioned:
    """The wrapper of that name around a network."""
    if name not in PRECONDITIONINGS:
        known = ", ".join(PRECONDITIONINGS)
        raise RequestError(f"Preconditioning '{name}' is not known: expected one of {known}.")
    return PRECONDITIONINGS[name](model, sigma_data)
