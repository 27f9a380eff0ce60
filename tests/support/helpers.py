"""Small exact pieces that many tests share."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap
from engine.priors.prior import Prior, PriorInfo


class DenseOperator(Operator):
    """A matrix as an operator, so that answers can be computed directly."""

    def __init__(self, matrix: Tensor, image_shape: tuple[int, int, int]) -> None:
        self.matrix, self.image_shape = matrix, image_shape
        self.measurement_shape = (1, 1, matrix.shape[0])

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) @ self.matrix.T).view(len(x), *self.measurement_shape)

    def adjoint(self, y: Tensor) -> Tensor:
        return (y.flatten(1) @ self.matrix).view(len(y), *self.image_shape)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        return self.adjoint(y) / self.matrix.square().sum()

    def describe(self) -> dict[str, Any]:
        return {"kind": "dense"}

    def norm(self, iterations: int = 30) -> float:
        return float(torch.linalg.matrix_norm(self.matrix, 2))


class FunctionPrior(Prior):
    """Any function of (x, sigma) as a prior."""

    def __init__(self, function: Any, channels: int = 1) -> None:
        self.function = function
        self.info = PriorInfo(
            "test", channels, IntensityMap("hu", 1000.0), None, 0, 1000, "none", "none", "0" * 64
        )

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        return self.function(x, sigma)


def dense_problem(
    seed: int = 0, rows: int = 40, size: int = 6, batch: int = 1, noise: float = 0.0
) -> Problem:
    """A small well-posed float64 problem with a known image."""
    generator = torch.Generator().manual_seed(seed)
    options: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    matrix = torch.randn(rows, size * size, **options) / rows**0.5
    operator = DenseOperator(matrix, (1, size, size))
    x = torch.randn(batch, 1, size, size, **options)
    y = operator.forward(x)
    y = y + noise * torch.randn(y.shape, **options)
    return Problem(operator, y, IntensityMap("hu", 1000.0), "CT", noise_sigma=noise, reference=x)


def limited_angle_problem() -> tuple[Problem, Tensor]:
    """45 views over 90 degrees of a square in a square, in float64, with its image."""
    geometry = CTGeometry.sparse_view(45, 90.0, size=64)
    operator = CTOperator(geometry, dtype=torch.float64)
    image = torch.zeros(1, 1, 64, 64, dtype=torch.float64)
    image[..., 16:44, 20:50] = 1
    image[..., 24:30, 30:40] = -0.5
    return Problem(operator, operator.forward(image), IntensityMap("hu", 1000.0), "CT"), image


def relative(a: Tensor, b: Tensor) -> float:
    """||a - b|| / ||b||."""
    return float((a - b).norm() / b.norm())


def dense_matrix(operator: Operator) -> Tensor:
    """A as a float64 matrix, one column per unit image."""
    n = math.prod(operator.image_shape)
    images = torch.eye(n, dtype=torch.float64).reshape(n, *operator.image_shape)
    return operator.forward(images).flatten(1).T


def proximal_dense(operator: Operator, y: Tensor, v: Tensor, rho: Tensor | float) -> Tensor:
    """argmin ||A x - y||^2 + rho ||x - v||^2 by a dense solve, sample by sample."""
    a = dense_matrix(operator)
    eye = torch.eye(a.shape[1], dtype=a.dtype)
    rhos = torch.as_tensor(rho, dtype=a.dtype).reshape(-1).expand(len(v))
    solved = [
        torch.linalg.solve(a.T @ a + r * eye, a.T @ y[i].flatten() + r * v[i].flatten())
        for i, r in enumerate(rhos)
    ]
    return torch.stack(solved).view_as(v)


# The command, whose denoiser stands still from the moment that a file holds a word until a
# signal comes: signals are written into a pipe, so that none is missed.
STANDS = """
import os, signal, sys
from pathlib import Path
from engine.cli import main
from engine.priors.analytic import TVPrior
path, word, denoise, signalled = Path(sys.argv[1]), sys.argv[2].encode(), TVPrior.__call__, []
reading, writing = os.pipe()
os.set_blocking(writing, False)
signal.set_wakeup_fd(writing)

def stands(*args):
    if not signalled and path.exists() and word in path.read_bytes():
        signalled.append(os.read(reading, 1))
    return denoise(*args)

TVPrior.__call__ = stands
sys.exit(main(sys.argv[3:]))
"""


def signalled(sign: int, path: Path, *command: str, word: str = "") -> tuple[int, str]:
    """Exit code and complaints of a command with the prior ``tv``.

    The signal comes when there is a file ``path`` with ``word`` in it, before the next step of
    the denoiser.
    """
    root = str(Path(__file__).resolve().parents[2])
    child = subprocess.Popen(
        [sys.executable, "-c", STANDS, str(path), word, *command],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while child.poll() is None and not (path.exists() and word.encode() in path.read_bytes()):
        time.sleep(0.01)
    child.send_signal(sign)
    said = child.communicate(timeout=300)[1]
    return child.returncode, said
