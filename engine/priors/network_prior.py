"""A trained network, or any function a person has, as a prior."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.physics.units import IntensityMap
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


Denoiser = Callable[[Tensor, float], Tensor]


class CallablePrior(Prior):
    """D(x; sigma) as somebody's ``denoise(x, sigma)`` gives it, in the units of ``intensity``."""

    def __init__(
        self, denoise: Denoiser, intensity: IntensityMap, channels: int, name: str = ""
    ) -> None:
        self.denoise = denoise.eval() if isinstance(denoise, nn.Module) else denoise
        self.info = PriorInfo(
            name=name or getattr(denoise, "__name__", type(denoise).__name__),
            channels=channels,
            intensity=intensity,
            native_size=None,
            sigma_min=0.0,
            sigma_max=1000.0,
            training_data="not known",
            licence="not known",
            sha256=_sha256(denoise),
            description="A denoiser given as a Python object.",
        )

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        out = self.denoise(x, sigma)
        if not isinstance(out, Tensor) or out.shape != x.shape:
            got = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise RequestError(
                f"The denoiser {self.info.name} must return a tensor of its input's shape "
                f"{list(x.shape)}, not {got}."
            )
        return out.to(x)

    def to(self, device: torch.device | str) -> CallablePrior:
        if isinstance(self.denoise, nn.Module):
            self.denoise.to(device)
        return self


def _sha256(denoise: Denoiser) -> str:
    """Of a network's weights; a function is not hashed, for its text is not all of it."""
    if not isinstance(denoise, nn.Module):
        return ""
    digest = hashlib.sha256()
    for name, value in denoise.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
