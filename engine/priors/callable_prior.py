"""Any denoiser as a prior: a function, or a network, ``(x, sigma) -> x``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.physics.units import IntensityMap
from engine.priors.prior import Prior, PriorInfo
from engine.spec.errors import RequestError

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
