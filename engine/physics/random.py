"""Random numbers that belong to one run, and to one slice within it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# Streams of one seed: the slice number is added to these.
MEASUREMENT, SOLVER = 0, 1 << 32

Generators = torch.Generator | Sequence[torch.Generator]


def make_generator(
    seed: int, device: torch.device | str = "cpu", stream: int = 0
) -> torch.Generator:
    """A generator for ``seed``; ``stream`` separates uses of one seed (noise, solver, slice)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + stream * 0xBF58476D1CE4E5B9) % (1 << 63)
    return torch.Generator(device=device).manual_seed(mixed)


def normal_like(x: Tensor, generator: Generators) -> Tensor:
    """Standard normal noise of the shape of ``x``.

    With one generator per sample, a slice's noise does not depend on its batch.
    """
    options = {"dtype": x.dtype, "device": x.device}
    if isinstance(generator, torch.Generator):
        return torch.randn(x.shape, generator=generator, **options)  # type: ignore[call-overload]
    draws = [torch.randn(x.shape[1:], generator=g, **options) for g in generator]  # type: ignore[call-overload]
    return torch.stack(draws)
