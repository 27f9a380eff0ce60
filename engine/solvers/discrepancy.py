"""The discrepancy principle (Morozov): an image should fit the data as well as the noise lets it.

The true image leaves a residual of ||W^1/2 (A x - y)|| = sigma sqrt(m), for m measured numbers. A
smaller residual has fitted noise, a larger one has left measured detail out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.problem import Problem

NEWTON_STEPS = 12  # they converge from below, and quadratically in the end


def noise_norm(problem: Problem) -> Tensor:
    """sigma sqrt(m) of every slice, ``[B, 1, 1, 1]``; zero where the noise is not known."""
    y, measured = problem.measurement, problem.measured()
    sigma = torch.as_tensor(problem.noise_sigma, dtype=y.dtype, device=y.device)
    return sigma.reshape(-1, 1, 1, 1) * measured.sum((1, 2, 3), keepdim=True).sqrt()


def weighted_norm(residual: Tensor, weights: Tensor | None) -> Tensor:
    """||W^1/2 r|| of every slice, ``[B, 1, 1, 1]``."""
    square = residual.square() if weights is None else weights * residual.square()
    return square.sum((1, 2, 3), keepdim=True).sqrt()


def pixel_noise(problem: Problem) -> Tensor:
    """SD that the noise leaves in a pixel measured alone, on average: ``[B, 1, 1, 1]``.

    That is sigma over the RMS of ||W^1/2 A e_i|| over the pixels i, from one white image: at this
    noise level rho = sigma_y^2 / sigma^2 is the mean of the diagonal of A^T W A.
    """
    y = problem.measurement
    generator = torch.Generator().manual_seed(0)
    white = torch.randn(1, *problem.operator.image_shape, generator=generator).to(y)
    seen = problem.operator.forward(white.expand(len(y), -1, -1, -1))
    sigma = torch.as_tensor(problem.noise_sigma).to(y).reshape(-1, 1, 1, 1)
    return sigma * white.norm() / weighted_norm(seen, problem.weights).clamp_min(1e-30)


def multiplier(residual: Tensor, weights: Tensor | float, limit: Tensor) -> Tensor:
    """The l >= 0 for which r / (1 + l W) has ||W^1/2 .|| = ``limit``; 0 where r is inside already.

    That is the nearest point of the ellipsoid, found by Newton's method on 1 / ||.||, which is
    nearly a straight line in l.
    """
    found = torch.zeros_like(limit)
    tiny = torch.finfo(residual.dtype).tiny
    for _ in range(NEWTON_STEPS):
        shrunk = 1 + found * weights
        square = weights * (residual / shrunk).square()
        size = square.sum((1, 2, 3), keepdim=True)
        slope = (weights * square / shrunk).sum((1, 2, 3), keepdim=True)
        step = (size.sqrt() / limit - 1) * size / slope.clamp_min(tiny)
        found = (found + step).clamp_min(0)
    return found
