"""Errors as ratios of norms: against the true image, and against the measurement."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.physics.operator import Operator


def nrmse_per_image(prediction: Tensor, reference: Tensor) -> Tensor:
    """||prediction - reference|| / ||reference|| of each image of a batch."""
    error = (prediction - reference).flatten(1).norm(dim=1)
    return error / reference.flatten(1).norm(dim=1)


@torch.no_grad()
def relative_residual(operator: Operator, x: Tensor, y: Tensor) -> float:
    """||A x - y|| / ||y||, over the whole batch; infinity when y is zero and A x is not."""
    residual = float((operator.forward(x) - y).norm())
    size = float(y.norm())
    if size == 0:
        return 0.0 if residual == 0 else math.inf
    return residual / size
