"""A prior on images it was not made for: in tiles, where coils see only a part, or with air.

For images so much larger than a network was trained on that it cannot take them whole (attention
over all pixels of a map grows with the square of their number). The windows that blend the tiles
add up to 1 at every pixel, so blending a network's answers is the same as blending denoised tiles.

Nothing where no coil sees anything.

Where all coil maps are zero the measurement says nothing of the image, and a prior alone would
paint there. Classical methods leave zero; a prior followed by the projection onto images that are
zero there does so, too. Every solver then stays at zero outside: a data step changes nothing
there, and a dual variable that starts at zero has nothing to gather. (Samples of DAPS keep the
small noise of their last Langevin step.)

A network trained on images clipped at, say, -800 HU pulls air (-1000 HU) up to -800, and the data
step makes the body pay for it. Where a scan shows that there is nothing but air, the image is
lifted to the lowest value the network knows before it is denoised, and lowered again after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.units import AIR_HU, noise_scale
from engine.priors.prior import Prior

# A ray through air alone, as a line integral: 2 mm of water, or three times its noise.
EMPTY_RAY = 0.04
NOISES = 3.0


class AirShifted(Prior):
    """D(x - b) + b, where b is the step from the lowest known value down to air, in air only."""

    def __init__(self, prior: Prior, background: Tensor) -> None:
        self.prior, self.background = prior, background
        self.info = replace(prior.info, symmetric=False)  # its air stays where it is

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        background = self.background.to(x)
        return self.prior(x - background, sigma) + background

    def to(self, device: torch.device | str) -> AirShifted:
        return AirShifted(self.prior.to(device), self.background.to(device))


def with_air(prior: Prior, problem: Problem) -> Prior:
    """The prior, shifted in the air around the patient if it needs that."""
    lowest = prior.info.details.get("lowest_hu")
    if lowest is None or lowest <= AIR_HU or problem.operator.geometry is None:
        return prior
    step = (AIR_HU - lowest) / problem.intensity.scale
    return AirShifted(prior, step * air_mask(problem))


def air_mask(problem: Problem) -> Tensor:
    """1 where a ray that met nothing has passed, in every slice: ``[1, 1, H, W]``."""
    operator, y = problem.operator, problem.measurement
    air = float(problem.intensity.to_normalised(torch.tensor(AIR_HU)))
    ones = torch.ones(1, *operator.image_shape).to(y)
    scale = noise_scale(problem.intensity)  # of a line integral in the prior's units
    least = torch.as_tensor(problem.noise_sigma).to(y) * NOISES
    empty = y - air * operator.forward(ones) < torch.clamp(least, min=EMPTY_RAY * scale)
    touched = operator.adjoint(empty.to(y))
    # the sum of the weights tells a ray that crosses a pixel from one that grazes its corner
    crossed = touched > 0.5 * operator.adjoint(torch.ones_like(y)) / y.shape[-2]
    return crossed.all(dim=0, keepdim=True).to(y)


class SupportedPrior(Prior):
    """P D(x), with P the projection onto images that are zero where ``support`` is."""

    def __init__(self, prior: Prior, support: Tensor) -> None:
        self.prior, self.support, self.info = prior, support, prior.info

    def __call__(self, x: Tensor, sigma: float) -> Tensor:
        seen = self.support.to(x)
        if len(seen) not in (1, len(x)):  # more samples than slices: keep what any slice has
            seen = seen.amax(dim=0, keepdim=True)
        return self.prior(x, sigma) * seen

    def anywhere(self) -> Prior:
        return self.prior.anywhere()

    def to(self, device: torch.device | str) -> SupportedPrior:
        return SupportedPrior(self.prior.to(device), self.support.to(device))


def with_support(prior: Prior, operator: Operator) -> Prior:
    """The prior, held at zero where no coil sees anything of the image.

    Not outside the field of view of CT: a body may be there, and zero is not air there.
    """
    support = operator.support() if operator.geometry is None else None
    return prior if support is None else SupportedPrior(prior, support.to(torch.float32))


def tiled(function: Callable[[Tensor], Tensor], x: Tensor, tile: int, overlap: int) -> Tensor:
    """``function`` applied to overlapping tiles of ``[B, C, H, W]`` and blended.

    Parameters
    ----------
    function
        Maps a tile to one of the same height and width; channels may change.
    tile
        Side of the tiles; an image narrower than it is taken whole in that direction.
    overlap
        Neighbours share at least this many pixels.
    """
    rows, columns = (_starts(size, tile, overlap) for size in x.shape[-2:])
    total: Tensor | None = None
    weight = x.new_zeros(x.shape[-2:])
    for top in rows:
        for left in columns:
            part = x[..., top : top + tile, left : left + tile]
            out = function(part)
            height, width = part.shape[-2:]
            window = _window(height, overlap, x)[:, None] * _window(width, overlap, x)
            if total is None:
                total = out.new_zeros((*out.shape[:-2], *x.shape[-2:]))
            total[..., top : top + height, left : left + width] += out * window
            weight[top : top + height, left : left + width] += window
    assert total is not None
    return total / weight


def _starts(size: int, tile: int, overlap: int) -> list[int]:
    """Evenly spaced first pixels of the tiles; the last tile ends with the image."""
    if size <= tile:
        return [0]
    count = math.ceil((size - overlap) / (tile - overlap))
    return [round(i * (size - tile) / (count - 1)) for i in range(count)]


def _window(length: int, overlap: int, like: Tensor) -> Tensor:
    """1 inside, falling as a squared sine over ``overlap`` pixels; positive everywhere."""
    position = torch.arange(length, device=like.device, dtype=torch.float32) + 0.5
    distance = torch.minimum(position, length - position)
    return torch.sin(0.5 * math.pi * (distance / max(overlap, 1)).clamp(max=1)).square().to(like)


# A denoiser that looks at the image from another place each time.
#
# A trained network does not treat an image, its mirror image and the same image a few pixels
# further on quite alike: each has its own small errors. A reconstruction asks it dozens of times.
# Asked from the same place, it repeats its errors and the dual variable collects them; from ever
# another place they average out, at no further denoiser call.

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
        augmented = x.roll((down, right), (-2, -1))
        if not self.mirror:
            return self.prior(augmented, sigma).roll((-down, -right), (-2, -1))
        return self.prior(augmented.flip(-1), sigma).flip(-1).roll((-down, -right), (-2, -1))


def augmented(prior: Prior, k: int) -> Prior:
    """The prior for iteration ``k``: the same place for the same k, so that runs can resume."""
    if isinstance(prior, SupportedPrior):  # what is seen stays where it is
        return SupportedPrior(augmented(prior.prior, k), prior.support)
    down, right = (round(LARGEST_SHIFT * (2 * (k * step % 1) - 1)) for step in STEPS)
    return Moved(prior, k % 2 == 1, (down, right))
