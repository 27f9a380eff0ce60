"""Does a prior know an image, or is it foreign to the slices the prior was trained on?

A denoiser removes noise best from images like those it was trained on. Noise is added to the image
and taken away again; the squared error that is left is compared with the error of a method that
knows no anatomy but is told the best choice for every coefficient: thresholding in the Haar basis,
whose least error is the sum of min(c^2, sigma^2). Denoising the image upside down and lying on its
side, too, tells how far the prior is used to which way is up: to a disc or a turned body, it makes
no difference.

What is usual is learnt from validation slices and kept with the prior. It depends on how much there
is in a slice, which the same least error measures: so a smooth image does not look familiar for
being smooth, nor a rich one foreign for being rich. An image is foreign when one of its numbers is
beyond usual on the unfamiliar side. The other side is never foreign: the result of a reconstruction
is closer to its prior than any clean image.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.files.atomic import write_bytes_atomic
from engine.files.budget import read_json
from engine.physics.random import make_generator
from engine.priors.prior import Prior
from engine.spec.errors import RequestError

Denoise = Callable[[Tensor, float], Tensor]

LEVELS = (0.1, 1.0)  # of the noise, in the prior's units: details, and organs
NAMES = (*(f"sigma {level:g}" for level in LEVELS), "upside down", "sideways")
# How many SDs beyond what is expected are still usual, so that few unseen slices of known anatomy
# are beyond in any number. The SD is never taken for less than this (dB): the slices are of few
# patients.
SDS, LEAST_SD = 2.75, 0.15
FEWEST_FOR_SLOPES = 10  # slices
SCALES = 5  # of the Haar transform
FLOOR = 1e-9  # of a squared error: a blank image has none
SUFFIX = ".familiarity.json"
LARGEST_BYTES = 1 << 16


@dataclass(frozen=True)
class Familiarity:
    """What `measure` gives for validation slices, in dB.

    ``expected`` holds, for every number, a constant and its slopes with the two complexities, which
    count within ``low`` and ``high``; ``sd`` is what is left.
    """

    expected: tuple[tuple[float, ...], ...]
    sd: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    slices: int
    sources: int

    def to_dict(self) -> dict[str, Any]:
        return {"numbers": list(NAMES), "levels": list(LEVELS), **asdict(self)}

    @classmethod
    def from_dict(cls, values: Any) -> Familiarity:
        """Check what a file says; RequestError when it cannot be used."""
        try:
            expected = tuple(_numbers(row, len(LEVELS) + 1) for row in values["expected"])
            known = cls(
                expected,
                _numbers(values["sd"], len(NAMES)),
                _numbers(values["low"], len(LEVELS)),
                _numbers(values["high"], len(LEVELS)),
                int(values["slices"]),
                int(values["sources"]),
            )
            same = tuple(values["numbers"]) == NAMES and tuple(values["levels"]) == LEVELS
        except (TypeError, KeyError, ValueError, OverflowError):
            same = False
        if not same or len(known.expected) != len(NAMES):
            raise RequestError("its familiarity cannot be used")
        return known

    def words(self) -> str:
        """For a model card."""
        sds = ", ".join(f"{name} {sd:.2f}" for name, sd in zip(NAMES, self.sd, strict=True))
        return f"measured on {self.slices} slices of {self.sources} sources (SD in dB: {sds})"

    def beyond(self, measured: Tensor) -> Tensor:
        """By how many SDs each number lies beyond what is expected, ``[B, 4]``."""
        numbers, complexity = measured[:, : len(NAMES)], measured[:, len(NAMES) :]
        low, high, sd = (complexity.new_tensor(v) for v in (self.low, self.high, self.sd))
        usual = _design(complexity.clamp(low, high)) @ complexity.new_tensor(self.expected).T
        return (numbers - usual) / sd.clamp_min(LEAST_SD)

    def excess(self, measured: Tensor) -> Tensor:
        """Above zero the image is foreign, ``[B]``."""
        return self.beyond(measured).amax(dim=1) - SDS


def _numbers(values: Any, count: int) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != count or not all(math.isfinite(number) for number in numbers):
        raise ValueError
    return numbers


def _design(complexity: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(complexity[:, :1]), complexity], dim=1)


@torch.no_grad()
def measure(denoise: Denoise, images: Tensor, largest: float = math.inf) -> Tensor:
    """Of ``[B, C, H, W]``: the four numbers, then the complexity at each level; dB, ``[B, 6]``.

    The higher a number, the less familiar. Complexity is the least error of thresholding.

    Four calls of ``denoise``, which knows noise up to ``largest``. The noise is the same for every
    image of a size and comes from generators of its own.
    """
    clean = images.detach().float()
    levels = [min(level, largest) for level in LEVELS]
    noises = [
        torch.randn((1, *clean.shape[1:]), generator=make_generator(0, stream=number))
        for number in range(len(levels))
    ]
    bounds = threshold_risk(clean, levels)
    errors = [
        _error(denoise, clean, noise.to(clean.device), level)
        for noise, level in zip(noises, levels, strict=True)
    ]
    level, noise = levels[-1], noises[-1].to(clean.device)
    upside_down = _error(denoise, clean.flip(-2), noise.flip(-2), level)
    lying, its_noise = (torch.rot90(one, 1, (-2, -1)) for one in (clean, noise))
    sideways = _error(denoise, lying, its_noise, level)
    ratios = [error / bound for error, bound in zip(errors, bounds, strict=True)]
    ratios += [errors[-1] / upside_down, errors[-1] / sideways]
    return 10 * torch.stack([*ratios, *bounds], dim=1).log10()


def _error(denoise: Denoise, clean: Tensor, noise: Tensor, level: float) -> Tensor:
    """Squared error per pixel of each image, on the CPU in float64."""
    difference = denoise(clean + level * noise, level) - clean
    return difference.square().sum(1).flatten(1).mean(1).cpu().double().clamp_min(FLOOR)


def threshold_risk(images: Tensor, levels: Sequence[float]) -> list[Tensor]:
    """Least error per pixel of thresholding Haar coefficients at each noise level, ``[B]`` each.

    Donoho and Johnstone, Biometrika 81 (1994): keeping a coefficient costs sigma^2, dropping it
    its own square.
    """
    average, details = images, []
    pixels = images.shape[-2] * images.shape[-1]
    for _ in range(SCALES):
        height, width = (side // 2 * 2 for side in average.shape[-2:])
        if min(height, width) < 2:
            break
        even = average[..., :height, :width]
        upper, lower = even[..., ::2, :], even[..., 1::2, :]
        total, down = upper + lower, upper - lower
        details += [
            (total[..., ::2] - total[..., 1::2]) / 2,
            (down[..., ::2] - down[..., 1::2]) / 2,
        ]
        details.append((down[..., ::2] + down[..., 1::2]) / 2)
        average = (total[..., ::2] + total[..., 1::2]) / 2
    squares = torch.cat([detail.flatten(1) for detail in details], dim=1).square()
    kept = average[0].numel()
    return [
        ((squares.clamp_max(level**2).sum(1) + kept * level**2) / pixels).cpu().double()
        for level in levels
    ]


def learn(denoise: Denoise, images: Sequence[Tensor], largest: float, sources: int) -> Familiarity:
    """What is usual for validation slices ``[1, C, H, W]``, by least squares."""
    if len(images) < 2:
        raise RequestError("What is familiar to a prior needs at least two validation slices.")
    rows = torch.cat([measure(denoise, image, largest) for image in images])
    numbers, complexity = rows[:, : len(NAMES)], rows[:, len(NAMES) :]
    design = _design(complexity)
    if len(rows) < FEWEST_FOR_SLOPES:
        design = design * design.new_tensor([1.0] + [0.0] * len(LEVELS))
    expected = torch.linalg.pinv(design) @ numbers
    # of few slices the fit takes up some of the spread
    freedom = max(1, len(rows) - int(torch.linalg.matrix_rank(design)))
    sd = ((numbers - design @ expected).square().sum(0) / freedom).sqrt()
    return Familiarity(
        tuple(_rounded(row) for row in expected.T),
        _rounded(sd),
        _rounded(complexity.amin(0)),
        _rounded(complexity.amax(0)),
        len(rows),
        sources,
    )


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(float(value), 5) for value in values)


def familiarity_of(prior: Prior) -> Familiarity | None:
    """Of a prior that has been calibrated."""
    values = prior.info.details.get("familiarity")
    return None if values is None else Familiarity.from_dict(values)


def excess(prior: Prior, images: Tensor) -> Tensor | None:
    """How foreign each image is to a prior: above zero it is; None for one not calibrated."""
    known = familiarity_of(prior)
    if known is None:
        return None
    return known.excess(measure(prior.anywhere(), images, prior.info.sigma_max))


# -- beside a prior's file: that one stays as it is, for records name its hash ------------------


def path_beside(prior: Path) -> Path:
    return prior.with_suffix(SUFFIX)


def write_beside(prior: Path, sha256: str, known: Familiarity) -> Path:
    path = path_beside(prior)
    body = {"prior_sha256": sha256, **known.to_dict()}
    write_bytes_atomic(path, (json.dumps(body, indent=1) + "\n").encode())
    return path


def read_beside(prior: Path, sha256: str) -> dict[str, Any] | None:
    """What lies beside a prior, if it is of this very prior; None without it."""
    path = path_beside(prior)
    if not path.is_file():
        return None
    try:
        body = read_json(path, LARGEST_BYTES, "what a prior knows")
        if not isinstance(body, dict) or body.get("prior_sha256") != sha256:
            return None
        return Familiarity.from_dict(body).to_dict()
    except (ValueError, RequestError):
        return None  # a prior is as good without it
