"""Does a prior know an image, or is it foreign to the slices the prior was trained on?

A denoiser removes noise best from images like those it was trained on. Noise is added to the image
and taken away again; the squared error that is left is compared with the error of a method that
knows no anatomy but is told the best choice for every coefficient: thresholding in the Haar basis,
whose least error is the sum of min(c^2, sigma^2). A smooth image is easy for both, so it does not
look familiar for being smooth. One more denoising, of the image upside down, tells how far the
prior insists on which way is up: a turned body, or a disc, is as good upside down.

The same numbers of validation slices are kept with the prior; an image is foreign when one of its
numbers lies beyond theirs on the unfamiliar side. The other side is never foreign: the result of a
reconstruction is smoother, and closer to its prior, than any clean image.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.data.atomic import write_bytes_atomic
from engine.errors import RequestError
from engine.priors.prior import Prior
from engine.random import make_generator

Denoise = Callable[[Tensor, float], Tensor]

LEVELS = (0.1, 1.0, 3.0)  # of the noise, in the prior's units; details, organs, the whole body
NAMES = (*(f"sigma {level:g}" for level in LEVELS), "upside down")
# How many SDs from the mean of the validation slices are still usual. They are few, and of fewer
# patients, so their SD is never taken for less than this (dB).
SDS, LEAST_SD = 4.0, 0.25
SCALES = 5  # of the Haar transform
FLOOR = 1e-9  # of a squared error: a blank image has none
SUFFIX = ".familiarity.json"
LARGEST_BYTES = 1 << 16


@dataclass(frozen=True)
class Familiarity:
    """Mean and SD, in dB, of the numbers that `measure` gives for validation slices."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]
    slices: int
    data: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"numbers": list(NAMES), **asdict(self)}

    @classmethod
    def from_dict(cls, values: Any) -> Familiarity:
        """Check what a file says; RequestError when it cannot be used."""
        try:
            mean, sd = (tuple(float(v) for v in values[name]) for name in ("mean", "sd"))
            slices, data = int(values["slices"]), str(values.get("data", ""))[:500]
            names = tuple(values["numbers"])
        except (TypeError, KeyError, ValueError, AttributeError):
            raise RequestError("its familiarity cannot be used") from None
        usable = all(map(math.isfinite, (*mean, *sd))) and min((*sd, 1.0)) >= 0
        if names != NAMES or len(mean) != len(NAMES) or len(sd) != len(NAMES) or not usable:
            raise RequestError("its familiarity cannot be used")
        return cls(mean, sd, slices, data)

    def words(self) -> str:
        """For a model card."""
        numbers = zip(NAMES, self.mean, self.sd, strict=True)
        said = "; ".join(f"{name} {mean:.2f} ({sd:.2f}) dB" for name, mean, sd in numbers)
        return f"{said}: mean (SD) over {self.slices} slices"

    def excess(self, numbers: Tensor) -> Tensor:
        """How far ``[B, numbers]`` lie beyond usual, in SDs: above zero is foreign, ``[B]``."""
        mean, sd = (torch.tensor(v, dtype=numbers.dtype) for v in (self.mean, self.sd))
        return ((numbers - mean) / sd.clamp_min(LEAST_SD)).amax(dim=1) - SDS


@torch.no_grad()
def measure(denoise: Denoise, images: Tensor, largest: float = math.inf) -> Tensor:
    """The numbers of ``[B, C, H, W]`` in dB, ``[B, 4]``: the higher, the less familiar.

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
    turned = _error(denoise, clean.flip(-2), noises[-1].to(clean.device).flip(-2), levels[-1])
    ratios = [error / bound for error, bound in zip(errors, bounds, strict=True)]
    return 10 * torch.stack([*ratios, errors[-1] / turned], dim=1).log10()


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


def learn(denoise: Denoise, images: Iterable[Tensor], largest: float, data: str) -> Familiarity:
    """Mean and SD over validation slices ``[1, C, H, W]``."""
    rows = torch.cat([measure(denoise, image, largest) for image in images])
    if len(rows) < 2:
        raise RequestError("Familiarity needs at least two validation slices.")
    mean, sd = (tuple(round(float(v), 4) for v in values) for values in (rows.mean(0), rows.std(0)))
    return Familiarity(mean, sd, len(rows), data)


def familiarity_of(prior: Prior) -> Familiarity | None:
    """Of a prior that has been calibrated."""
    values = prior.info.details.get("familiarity")
    return None if values is None else Familiarity.from_dict(values)


def excess(prior: Prior, images: Tensor) -> Tensor | None:
    """How foreign each image is to a prior: above zero it is; None for one not calibrated."""
    known = familiarity_of(prior)
    if known is None:
        return None
    return known.excess(measure(prior, images, prior.info.sigma_max))


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
        if path.stat().st_size > LARGEST_BYTES:
            raise RequestError("it is too large")
        body = json.loads(path.read_bytes())
        if not isinstance(body, dict) or body.get("prior_sha256") != sha256:
            return None
        return Familiarity.from_dict(body).to_dict()
    except (OSError, ValueError, RecursionError, RequestError):
        return None  # a prior is as good without it
