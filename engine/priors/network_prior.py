"""A trained network as a prior."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from engine.priors.precondition import Preconditioned
from engine.priors.prior import Prior, PriorInfo
from engine.spec.errors import RequestError

PRECISIONS = ("fp32", "bf16")


def bf16_is_supported(device: torch.device | str = "cpu") -> bool:
    """Whether convolutions in bfloat16 are native to the device."""
    if torch.device(device).type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def check_precision(precision: str, device: torch.device | str) -> None:
    """Refuse what is not known, or what the device would only pretend to."""
    if precision not in PRECISIONS:
        raise RequestError(
            f"⟦precision⟧ '{precision}' is not known: choose {', '.join(PRECISIONS)}."
        )
    if precision == "bf16" and not bf16_is_supported(device):
        raise RequestError(f"⟦precision⟧ bf16: the {torch.device(device).type} here has none.")


def in_precision(prior: Prior, precision: str) -> Prior:
    """A prior whose network computes in ``precision``; other priors have none to choose."""
    if not isinstance(prior, NetworkPrior) or prior.bf16 == (precision == "bf16"):
        return prior
    other = copy.copy(prior)
    other.bf16 = precision == "bf16"
    return other


class NetworkPrior(Prior):
    """D(x; sigma) of a network, computed for reading, not for training.

    Parameters
    ----------
    denoiser
        The network with its preconditioning.
    info
        Its metadata. Outside of ``[sigma_min, sigma_max]`` the nearest trained level is used.
    bf16
        Compute convolutions in bfloat16 where the device has it.
    slices_at_once
        How many images go through the network together. On a CPU one at a time is as fast and
        makes a slice's result independent of its batch, bit for bit; a GPU wants more.
    """

    def __init__(
        self,
        denoiser: Preconditioned,
        info: PriorInfo,
        bf16: bool = False,
        slices_at_once: int | None = None,
    ) -> None:
        self.denoiser = denoiser.eval().requires_grad_(False)
        self.denoiser.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.info = info
        self.bf16 = bf16
        self.slices_at_once = slices_at_once
        self.device = next(denoiser.parameters()).device

    def to(self, device: torch.device | str) -> NetworkPrior:
        self.denoiser.to(device)
        self.device = torch.device(device)
        return self

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        level = min(max(float(sigma), self.info.sigma_min), self.info.sigma_max)
        if torch.is_grad_enabled() and x.requires_grad:
            return self._denoise(x, level)
        with torch.inference_mode():
            out = self._denoise(x, level)
        # outside of inference mode a copy is an ordinary tensor again, which autograd accepts
        return out.clone()

    def _denoise(self, x: Tensor, sigma: float) -> Tensor:
        inputs = x.to(self.device, torch.float32)
        count = self.slices_at_once or (1 if self.device.type == "cpu" else 16)
        use_bf16 = self.bf16 and bf16_is_supported(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=use_bf16):
            parts = [self.denoiser(part, sigma) for part in inputs.split(count)]
        return torch.cat(parts).contiguous().to(x)
