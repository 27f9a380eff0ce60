"""One step of SIRT, for the method of that name and for those that use it inside."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.problem import Problem


class SirtStep:
    """x -> x + C A^T R (y - A x) with R = W / (A 1) and C = 1 / (A^T W 1).

    It needs rays with positive lengths, as CT has them.
    """

    def __init__(self, problem: Problem) -> None:
        operator, y = problem.operator, problem.measurement
        weights = torch.ones_like(y) if problem.weights is None else problem.weights
        row_sums = operator.forward(y.new_ones((len(y), *operator.image_shape)))
        column_sums = operator.adjoint(weights)
        self.problem = problem
        # A ray or pixel that meets nothing must not be divided by.
        self.row_scale = torch.where(row_sums > 0, weights / row_sums, torch.zeros_like(y))
        self.column_scale = torch.where(
            column_sums > 0, 1 / column_sums, torch.zeros_like(column_sums)
        )

    def __call__(self, x: Tensor) -> Tensor:
        residual = self.row_scale * self.problem.residual(x)
        return x - self.column_scale * self.problem.operator.adjoint(residual)
