"""Conjugate gradients for min ||A d - s||^2_W + rho ||d||^2, every sample on its own (CGLS).

In exact arithmetic these are the steps of conjugate gradients on (A^T W A + rho) d = A^T W s. Here
what is not yet explained is kept as a measurement, and goes through A^T anew at every step, so
that its rounding errors come out as small as A^T makes them. Kept as an image they would be divided
by the smallest eigenvalues in the end: in float32 the preconditioned data step of a limited-angle
scan then loses its image after some hundred steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.cg import CHECK_EVERY, LinearMap, Lookout, dot


def damped_least_squares(
    forward: LinearMap,
    adjoint: LinearMap,
    weigh: LinearMap,
    missing: Tensor,
    d: Tensor,
    rho: Tensor | float,
    iterations: int,
    limit: Tensor | float = 0.0,
    precondition: LinearMap | None = None,
) -> Tensor:
    """At most ``iterations`` steps from ``d``, with ``missing`` = s - A d.

    A sample whose gradient is shorter than ``limit`` is frozen, so that its result does not
    depend on the other samples in the batch.
    """
    precondition = precondition or (lambda r: r)
    zero = d.new_zeros(())
    gradient = adjoint(weigh(missing)) - rho * d
    p = precondition(gradient)
    rs = dot(gradient, p)
    lookout = Lookout()
    for i in range(iterations):
        active = (dot(gradient, gradient) > limit**2) & (rs > 0)
        if i % CHECK_EVERY == 0 and lookout.all_still(active):
            break
        seen = forward(p)
        curvature = dot(seen, weigh(seen)) + rho * dot(p, p)
        alpha = torch.where(active & (curvature > 0), rs / curvature, zero)
        d = d + alpha * p
        missing = missing - alpha * seen
        gradient = adjoint(weigh(missing)) - rho * d
        s = precondition(gradient)
        rs_next = dot(gradient, s)
        p = s + torch.where(active, rs_next / rs, zero) * p
        rs = torch.where(active, rs_next, rs)
    return d
