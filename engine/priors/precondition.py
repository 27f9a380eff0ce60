"""From a network F to a denoiser D(x; sigma): how input, output and noise level are scaled.

Each wrapper is an ``nn.Module`` with the network as its child ``model`` (so that parameters are
named ``model.*``, as in public checkpoints) and is called as ``denoiser(x, sigma)``. A further
one is added by writing its class and naming it in ``PRECONDITIONINGS``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from engine.priors.discrete_schedule import check_schedule, sigmas, step_of
from engine.priors.trained_scan import TrainedScan
from engine.spec.errors import RequestError


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

    @classmethod
    def check_kwargs(cls, kwargs: dict[str, Any]) -> None:
        """Raise RequestError for arguments, from an untrusted file, that do not fit."""
        if kwargs:
            raise RequestError("This preconditioning takes no arguments.")

    def network(self, x: Tensor, c_noise: Tensor) -> Tensor:
        """F in float32; of networks that also estimate a variance, the first C channels."""
        return self.model(x, c_noise.float())[:, : x.shape[1]].float()


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


class NegatedEDMPreconditioned(EDMPreconditioned):
    """EDM with -F, as diffusers' EDM schedulers define it for 'v_prediction'."""

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        s = sigma[:, None, None, None]
        c_skip = self.sigma_data**2 / (s**2 + self.sigma_data**2)
        return 2 * c_skip * x - super().denoise(x, sigma)


class VPPreconditioned(Preconditioned):
    """D = x - sigma F(x / sqrt(1 + sigma^2), 999 t(sigma)), the VP column of the same table.

    t(sigma) inverts sigma^2 = exp(beta_d t^2 / 2 + beta_min t) - 1, the continuous form of
    1000 steps with linear betas.
    """

    beta_d, beta_min, steps = 19.9, 0.1, 1000

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        s = sigma[:, None, None, None]
        # in float64, because beta_min is subtracted from almost itself at small sigma
        growth = torch.log1p(sigma.double() ** 2)
        root = (self.beta_min**2 + 2 * self.beta_d * growth).sqrt()
        c_noise = (self.steps - 1) * (root - self.beta_min) / self.beta_d
        return x - s * self.network(x / (1 + s**2).sqrt(), c_noise)


class VEPreconditioned(Preconditioned):
    """D = x + sigma F(x, ln(sigma / 2)), the VE column of the same table."""

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        return x + sigma[:, None, None, None] * self.network(x, (sigma / 2).log())


class IDDPMPreconditioned(Preconditioned):
    """D = x - sigma F(x / sqrt(1 + sigma^2), 999 - j), j the nearest of 1000 levels u_j.

    The levels fall from u_0 to u_1000 = 0 and follow the cosine schedule of Nichol and Dhariwal
    with its increments capped.
    """

    levels: Tensor
    steps = 1000

    def __init__(self, model: nn.Module, sigma_data: float = 0.5) -> None:
        super().__init__(model, sigma_data)
        self.register_buffer("levels", iddpm_levels(self.steps).float(), persistent=False)

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        s = sigma[:, None, None, None]
        index = (sigma[:, None] - self.levels).abs().argmin(dim=1)
        return x - s * self.network(x / (1 + s**2).sqrt(), self.steps - 1 - index)


def iddpm_levels(steps: int = 1000, cap: float = 0.001, offset: float = 0.008) -> Tensor:
    """u_0 .. u_steps: u_{j-1}^2 = (u_j^2 + 1) / max(abar_{j-1} / abar_j, cap) - 1, u_steps = 0."""
    levels = [0.0]
    for j in range(steps, 0, -1):
        abar = [math.sin(0.5 * math.pi * i / steps / (offset + 1)) ** 2 for i in (j - 1, j)]
        levels.append(math.sqrt((levels[-1] ** 2 + 1) / max(abar[0] / abar[1], cap) - 1))
    return torch.tensor(levels[::-1], dtype=torch.float64, device="cpu")


class DiscretePreconditioned(Preconditioned):
    """A network trained in numbered steps (DDPM, guided-diffusion, diffusers).

    With a = 1 / sqrt(1 + sigma^2) and F = F(a x, t(sigma)): epsilon-prediction D = x - sigma F;
    v-prediction D = a^2 x - a sigma F; sample-prediction D = F.

    Parameters
    ----------
    prediction
        'epsilon', 'v' or 'sample'.
    time
        'interpolated' or 'nearest', see ``engine.priors.discrete_schedule.step_of``.
    noise
        The schedule, see ``engine.priors.discrete_schedule``.
    """

    log_sigmas: Tensor

    def __init__(
        self,
        model: nn.Module,
        sigma_data: float,
        prediction: str,
        time: str,
        noise: dict[str, Any],
    ) -> None:
        super().__init__(model, sigma_data)
        self.prediction, self.nearest = prediction, time == "nearest"
        self.register_buffer("log_sigmas", sigmas(noise).log().float(), persistent=False)

    @classmethod
    def check_kwargs(cls, kwargs: dict[str, Any]) -> None:
        if set(kwargs) != {"prediction", "time", "noise"} or not isinstance(kwargs["noise"], dict):
            raise RequestError("This preconditioning needs 'prediction', 'time' and 'noise'.")
        if kwargs["prediction"] not in ("epsilon", "v", "sample"):
            raise RequestError("A network predicts 'epsilon', 'v' or 'sample'.")
        if kwargs["time"] not in ("interpolated", "nearest"):
            raise RequestError("The step of a noise level is 'interpolated' or 'nearest'.")
        check_schedule(kwargs["noise"])

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        s = sigma[:, None, None, None]
        a = (1 + s**2).rsqrt()
        out = self.network(a * x, step_of(sigma.log(), self.log_sigmas, self.nearest))
        if self.prediction == "epsilon":
            return x - s * out
        if self.prediction == "v":
            return a**2 * x - a * s * out
        return out


class DirectPreconditioned(Preconditioned):
    """No denoiser: the image is x + sd F(x / sd, 0), where x is the FBP image of one kind of scan.

    The network learns the error of the FBP image; at first it has none to take away. ``scan``
    says what it was trained for; sigma means nothing here.
    """

    def __init__(self, model: nn.Module, sigma_data: float, scan: dict[str, Any]) -> None:
        super().__init__(model, sigma_data)
        self.scan = scan

    @classmethod
    def check_kwargs(cls, kwargs: dict[str, Any]) -> None:
        if set(kwargs) != {"scan"} or not isinstance(kwargs["scan"], dict):
            raise RequestError("This preconditioning needs the 'scan' it was trained for.")
        TrainedScan.from_dict(kwargs["scan"])

    def denoise(self, x: Tensor, sigma: Tensor) -> Tensor:
        sd = self.sigma_data
        return x + sd * self.network(x / sd, torch.zeros_like(sigma))


PRECONDITIONINGS: dict[str, type[Preconditioned]] = {
    "edm": EDMPreconditioned,
    "edm-v": NegatedEDMPreconditioned,
    "vp": VPPreconditioned,
    "ve": VEPreconditioned,
    "iddpm": IDDPMPreconditioned,
    "discrete": DiscretePreconditioned,
    "direct": DirectPreconditioned,
}


def precondition(
    name: str, model: nn.Module, sigma_data: float, kwargs: dict[str, Any] | None = None
) -> Preconditioned:
    """The wrapper of that name around a network; absurd arguments are refused."""
    if name not in PRECONDITIONINGS:
        known = ", ".join(PRECONDITIONINGS)
        raise RequestError(f"Preconditioning '{name}' is not known: expected one of {known}.")
    PRECONDITIONINGS[name].check_kwargs(kwargs or {})
    return PRECONDITIONINGS[name](model, sigma_data, **(kwargs or {}))
