"""A denoiser that looks at the image from another place each time.

A trained network does not treat an image, its mirror image and the same image a few pixels
further on quite alike: each has its own small errors. A reconstruction asks it dozens of times.
Asked from the same place, it repeats its errors and the dual variable collects them; from ever
another place they average out, at no further denoiser call.
"""

from __future__ import annotations

from torch import Tensor

from engine.priors.prior import Prior
from engine.priors.support import SupportedPrior

LARGEST_SHIFT = 4  # pixels; where the body is cut off at the edge, what comes in is strange
# Multiples of these two, modulo 1, fill the square evenly from the first few on (the plastic
# number's inverse and its square).
STEPS = (0.7548776662466927, 0.5698402909980532)


class Moved(Prior):
    """T^-1 D(T x): T mirrors left and right, or not, and shifts on the torus of the image."""

    def __init__(self, prior: Prior, mirror: bool, shift: tuple[int, int]) -> None:
        self.prior, self.info = prior, prior.info
        self.mirror, self.shift = mirror, shift

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        down, right = self.shift
        moved = x.roll((down, right), (-2, -1))
        if not self.mirror:
            return self.prior(moved, sigma).roll((-down, -right), (-2, -1))
        return self.prior(moved.flip(-1), sigma).flip(-1).roll((-down, -right), (-2, -1))


def moved(prior: Prior, k: int) -> Prior:
    """The prior for iteration ``k``: the same place for the same k, so that runs can resume."""
    if isinstance(prior, SupportedPrior):  # what is seen stays where it is
        return SupportedPrior(moved(prior.prior, k), prior.support)
    down, right = (round(LARGEST_SHIFT * (2 * (k * step % 1) - 1)) for step in STEPS)
    return Moved(prior, k % 2 == 1, (down, right))
