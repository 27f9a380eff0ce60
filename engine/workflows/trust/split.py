"""What of an image the measurement determines, and what the prior supplied.

With an ill-conditioned A "determined" depends on the noise. The measured part here is

    m = (A^T W A + lambda I)^-1 A^T W A x,     the guessed part g = x - m,

which keeps s^2 / (s^2 + lambda) of a direction with singular value s: nearly all of it where
s >> sqrt(lambda), nothing where s = 0. As lambda goes to zero m becomes A+ A x, the orthogonal
projection of x onto what A sees. lambda = (noise SD / SD of the image)^2: a direction counts as
measured when a signal of the image's own size stands above the noise there. It is never less
than ``FLOOR`` ||A||^2, which is also the rule for data without noise: singular values below
0.3 % of the largest count as not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.cg import CHECK_EVERY, ConjugateGradients, dot
from engine.physics.problem import Problem
from engine.runs.detail import FLOOR, detail_shares, origin_of, penalty_of
from engine.solvers.data_step import DataStep, DataStepSettings

# Of the normal equations' residual, at which they count as solved; no less than the number type
# can tell. In float32 the parts are then right to about a thousandth of the image.
TOLERANCE = 1e-10
MOST_STEPS = 2000


@dataclass(frozen=True)
class Split:
    """``measured`` + ``guessed`` is the image above ``origin``, all in the prior's units.

    ``share`` is the guessed part of the image's energy, ``detail`` of its edges inside the body,
    ``leak`` is ||A g|| / ||A x||, which is
    zero for a part that lies in the null space entirely; both per slice.
    """

    measured: Tensor
    guessed: Tensor
    origin: float
    penalty: Tensor  # lambda per slice
    share: list[float]
    detail: list[float]
    leak: list[float]
    steps: int  # of conjugate gradients; 0 when there is a closed form
    residual: float  # of the normal equations, relative, the worst slice
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "penalty": self.penalty.flatten().tolist(),
            "floor": FLOOR,
            "exact": self.steps == 0,
            "cg_steps": self.steps,
            "cg_residual": self.residual,
            "cg_tolerance": self.tolerance,
            "guessed_share": self.share,
            "guessed_detail": self.detail,
            "leak": self.leak,
        }


class Splitter:
    """Splits images of one problem; lambda is chosen from the first, so that all compare.

    ``signal`` asks about structures of another size than the image's own SD. ``between`` is told
    the steps of conjugate gradients now and then, and says whether to go on.
    """

    def __init__(
        self,
        problem: Problem,
        image: Tensor,
        floor: float = FLOOR,
        signal: float | None = None,
        between: Callable[[int], bool] = lambda steps: True,
    ) -> None:
        self.problem, self.between = problem, between
        self.origin = origin_of(problem)
        self.data = DataStep(problem, DataStepSettings())
        self.penalty = penalty_of(problem, image, floor, signal)
        self.tolerance = max(TOLERANCE, torch.finfo(image.dtype).eps)

    @torch.no_grad()
    def __call__(self, image: Tensor) -> Split:
        operator = self.problem.operator
        x = image - self.origin
        seen = operator.forward(x)
        nothing = torch.zeros_like(self.problem.measurement)
        # argmin_g ||A g||^2_W + lambda ||g - x||^2 is the guessed part
        guessed = operator.proximal(nothing, x, self.penalty, self.problem.weights)
        steps, residual = 0, 0.0
        if guessed is None:
            measured, steps, residual = self.solve(self.data.normal(x))
            guessed = x - measured
        else:
            measured = x - guessed
        share = dot(guessed, guessed) / dot(x, x).clamp_min(1e-30)
        lost = operator.forward(guessed)
        leak = (dot(lost, lost) / dot(seen, seen).clamp_min(1e-30)).sqrt()
        return Split(
            measured,
            guessed,
            self.origin,
            self.penalty,
            share.flatten().tolist(),
            detail_shares(self.problem, image, measured, guessed),
            leak.flatten().tolist(),
            steps,
            residual,
            self.tolerance,
        )

    def correction(self, image: Tensor) -> Tensor:
        """What the data would change in ``image``: (A^T W A + lambda)^-1 A^T W (y - A x)."""
        return self.solve(self.data.back_projection - self.data.normal(image))[0]

    @torch.no_grad()
    def solve(self, rhs: Tensor) -> tuple[Tensor, int, float]:
        """From zero, so that the answer never leaves the range of A^T; steps and residual."""
        cg = ConjugateGradients(
            lambda x: self.data.normal(x) + self.penalty * x,
            rhs,
            start=torch.zeros_like(rhs),
            tolerance=self.tolerance,
        )
        steps = 0
        while steps < MOST_STEPS and bool(cg.active().any()) and self.between(steps):
            for _ in range(CHECK_EVERY):
                cg.step()
            steps += CHECK_EVERY
        left = dot(cg.r, cg.r) / dot(rhs, rhs).clamp_min(1e-30)
        return cg.x, steps, float(left.max().sqrt())


LEAST_SEEDS = 4
# The map has settled when one more seed changes it by less than this share of itself, RMS, twice
# in a row; ``below`` replaces the share by a number in HU (or the input's scale).
SETTLED_SHARE = 0.1
IN_A_ROW = 2


@dataclass
class Spread:
    """Welford's sums over images that need not be kept."""

    count: int = 0
    mean: NDArray[np.float64] | None = None
    _squares: NDArray[np.float64] | None = None
    changes: list[float] = field(default_factory=list)  # RMS change of the SD map, by seed

    def add(self, image: np.ndarray) -> None:
        before = self.sd
        values = image.astype(np.float64)
        self.count += 1
        if self.mean is None or self._squares is None:
            self.mean, self._squares = values.copy(), np.zeros_like(values)
            return
        step = values - self.mean
        self.mean = self.mean + step / self.count
        self._squares = self._squares + step * (values - self.mean)
        if before is not None and self.sd is not None:
            self.changes.append(rms(self.sd - before))

    @property
    def sd(self) -> NDArray[np.float64] | None:
        """The sample SD (n - 1); None of fewer than two images."""
        if self.count < 2 or self._squares is None:
            return None
        return np.sqrt(self._squares / (self.count - 1))

    @property
    def own_error(self) -> float | None:
        """Relative standard error of each SD, for normal values: 1 / sqrt(2 (n - 1))."""
        return None if self.count < 2 else 1 / float(np.sqrt(2 * (self.count - 1)))

    def settled(self, below: float | None = None) -> bool:
        sd = self.sd
        if sd is None or self.count < LEAST_SEEDS or len(self.changes) < IN_A_ROW:
            return False
        limit = SETTLED_SHARE * rms(sd) if below is None else below
        return all(change <= limit for change in self.changes[-IN_A_ROW:])


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
