"""A quadratic term between neighbouring slices: <x, L x> = sum_s ||x_{s+1} - x_s||^2.

In the data step it stands as rho w <x, L x>. Taking rho in makes w mean the same at every noise
level: it weighs the pull of a slice's neighbours against that of its own denoised image v, and
argmin ||A x - y||^2 + rho ||x - v||^2 + rho w <x, L x> is the usual data step around the smoothed
image P^-1 v, with ||.||^2 measured by P = I + w L. What the scan does not see is then smoothed by
P^-1 at once, while in the plain norm CG would first solve for what it sees: the pull is many
orders of magnitude weaker than the measurement's, so P has to be the preconditioner, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from engine.physics.cg import LinearMap
from engine.spec.errors import RequestError


class Coupling:
    """P = I + w L along the first axis of ``[B, C, H, W]``."""

    def __init__(self, weight: float, like: Tensor) -> None:
        self.weight, self.shape = weight, like.shape
        count = len(like)
        # L is diagonal in the cosines (DCT-II): its ends see nothing beyond themselves.
        j, s = (torch.arange(count, dtype=torch.float64) for _ in range(2))
        modes = torch.cos(math.pi / count * j[:, None] * (s + 0.5))
        self.modes = (modes / modes.norm(dim=1, keepdim=True)).to(like)
        self.scales = (1 + weight * (2 - 2 * torch.cos(math.pi / count * j))).to(like)

    def apply(self, x: Tensor) -> Tensor:
        """P x."""
        step = self.weight * (x[1:] - x[:-1])
        pulled = x.clone()
        pulled[:-1] -= step
        pulled[1:] += step
        return pulled

    def solve(self, x: Tensor) -> Tensor:
        """P^-1 x."""
        return self.by_mode(x, lambda modes: modes / self.scales.view(-1, 1, 1, 1))

    def by_mode(self, x: Tensor, solve: LinearMap) -> Tensor:
        """``solve`` on the waves along z that L does not mix."""
        waves = torch.tensordot(self.modes, x, dims=([1], [0]))
        return torch.tensordot(self.modes, solve(waves), dims=([0], [0]))

    def join(self, x: Tensor) -> Tensor:
        """The slices as channels of one sample: CG then sees one system, not one per slice."""
        return x.flatten(0, 1)[None]

    def joined(self, apply: LinearMap) -> LinearMap:
        """A map of slices as a map of the joined sample."""
        return lambda x: self.join(apply(x.view(self.shape)))


def check_neighbours(numbers: Sequence[int]) -> None:
    if any(after - before != 1 for before, after in pairwise(numbers)):
        raise RequestError("⟦couple_z⟧ is for neighbouring slices: give ⟦slice⟧ A:B with no step.")
