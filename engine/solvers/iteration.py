"""What a solver shows of itself after every iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

NORMS = ("residual_x", "residual_z", "gap", "dual")


@dataclass
class Iteration:
    """One outer iteration, as the app, the record and the export see it.

    ``image`` is this step's answer (what finishing early returns): one of ``z``, the denoised
    image, and ``x``, the data-consistent one, as the method prescribes. Norms are per sample.
    ``psd`` holds radial power curves ``[B, C, R]`` by name ('residual', 'homogenized',
    'target') and ``noise`` the images they are the spectra of; ``seconds`` the time in 'data',
    'sh', 'denoiser'. ``state`` is all a solver needs, with the random generators, to go on.
    """

    k: int  # 1..K
    K: int
    sigma: float
    z: Tensor
    x: Tensor
    image: Tensor
    residual_x: Tensor  # ||A x - y||
    residual_z: Tensor  # ||A z - y||
    gap: Tensor  # ||x - z||
    dual: Tensor  # ||u||
    state: dict[str, Tensor]
    psd: dict[str, Tensor] = field(default_factory=dict)
    noise: dict[str, Tensor] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    nfe: int = 0  # denoiser calls so far
    metrics: dict[str, float] = field(default_factory=dict)
    note: str = ""  # a sentence on whether the method has converged, if it can tell

    @cached_property
    def norms(self) -> dict[str, list[float]]:
        """The four norms of every sample, brought from the device together."""
        values = torch.stack([getattr(self, name).flatten() for name in NORMS]).tolist()
        return dict(zip(NORMS, values, strict=True))
