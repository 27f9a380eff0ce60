"""Coil maps of a slice, and a first image, which checks them and says how bright images will be.

Priors see MR images with a 0.99 quantile of the magnitude of 1. The zero-filled image of an
accelerated scan is too dark by up to the acceleration, so the quantile is taken from a better one:
with several coils a few steps of SENSE, which also shows what the coil maps leave unexplained;
with one coil the zero-filled image whose samples are weighted by the gaps they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.ndimage import uniform_filter
from torch import Tensor

from engine.data.dataset import Dataset
from engine.data.kspace.grid import KspaceSlice, Plane, line_gaps
from engine.physics.cg import conjugate_gradients, dot
from engine.physics.operator import Operator
from engine.physics.sensitivity import MIN_LINES, CoilMaps, central_block, estimate_maps

FULL_DATA = (
    "The mask leaves too few central lines for coil maps; "
    "they were estimated from the fully sampled data."
)
# Of the measurement, in norm: more left unexplained shows as ghosts (see the tests).
UNEXPLAINED = 0.02
BESIDE_NOISE = 0.3  # of the noise: less left unexplained does not matter
BEST_GIVEN = "Give maps (⟦maps⟧ FILE), or measure 16 or more central lines."


@dataclass(frozen=True)
class SliceMaps:
    maps: Tensor  # complex [coils, H, W]
    source: str
    given: bool = False
    poor: bool = False  # low-resolution estimates
    warning: str = ""


def maps_of(
    part: KspaceSlice, kept: Plane | None, complete: bool, sigma: float, what: str
) -> SliceMaps:
    """Sensitivities of a slice; ``kept`` is what of it is used, None allows all of a full scan."""
    if part.maps is not None:
        return SliceMaps(torch.from_numpy(part.maps), "from the file", given=True)
    sampled, warning = part.sampled if kept is None else kept, ""
    lines = _lines(sampled)
    if part.calibration is not None and _lines(part.calibration[1]) >= max(lines, MIN_LINES):
        kspace, calibration = part.calibration
        found = estimate_maps(torch.from_numpy(kspace), calibration, what, sigma)
        return SliceMaps(found.maps, _words(found, "calibration"), poor=_is_poor(found))
    if complete and lines < MIN_LINES:
        sampled, warning = part.sampled, FULL_DATA
    found = estimate_maps(torch.from_numpy(part.kspace), sampled, what, sigma)
    return SliceMaps(found.maps, _words(found, "central"), poor=_is_poor(found), warning=warning)


def check_maps(dataset: Dataset, maps: list[SliceMaps], first: FirstImage) -> None:
    """Says whether the maps and one image explain the measurement down to its noise."""
    left = first.unexplained or 0.0
    unexplained = left > max(UNEXPLAINED, BESIDE_NOISE * first.noise)
    amount = f"{left:.1%} of the measurement unexplained beyond its noise"
    found = maps[0]
    if any(one.given for one in maps) and unexplained:
        sentence = (
            f"The given coil maps leave {amount}: are they of this scan, in the order of its coils "
            "and the right way round?"
        )
        dataset.check(
            "coil maps", "doubtful", sentence, "Let them be estimated, or correct the file."
        )
    elif any(one.poor for one in maps) or unexplained:
        sentence = (
            f"The coil maps ({found.source}) leave {amount}: expect ghosts. Maps from few lines, "
            "motion, or a field of view smaller than the object can be the reason."
        )
        dataset.check("coil maps", "doubtful", sentence, BEST_GIVEN)
    else:
        dataset.check("coil maps", "good", f"The maps ({found.source}) leave {amount}.")
        return
    dataset.warn(dataset.checks[-1].sentence)


def _lines(sampled: Plane) -> int:
    rows, columns = central_block(sampled)
    across = columns.stop - columns.start
    return across if sampled.ndim == 1 else min(across, rows.stop - rows.start)


def _is_poor(found: CoilMaps) -> bool:
    return found.method == "low resolution"


def _words(found: CoilMaps, of: str) -> str:
    return f"{found.method}, from {found.lines} {of} lines"


# Samples weighted by the gap they stand for give an image with as much fine structure as the
# true one, but with aliases; unweighted ones give too little of both. Between the two the
# 0.99 quantile comes out right within a tenth, 3 % low on average (see the tests).
GAP_EXPONENT = 0.75
NEIGHBOURHOOD = 9  # samples each way, in which the density of a two-dimensional mask is counted
STEPS = 15
LEAST_RIDGE = 1e-5  # of ||A||^2: without noise, too, the least visible parts are held back


@dataclass(frozen=True)
class FirstImage:
    """``unexplained``: the share of y that A x leaves beyond its noise, in norm; ``noise`` its own.

    Both are those of the worst slice; None where there is nothing to explain.
    """

    image: Tensor
    source: str
    unexplained: float | None = None
    noise: float = 0.0


def weighted_image(operator: Operator, y: Tensor, sampled: Plane) -> FirstImage:
    weights = torch.from_numpy(_gaps(sampled) ** GAP_EXPONENT).to(y)
    image = operator.pseudo_inverse(y * weights)
    return FirstImage(image, "the zero-filled image, samples weighted by their gaps")


def _gaps(sampled: Plane) -> np.ndarray:
    """The part of k-space that each sample stands for."""
    if sampled.ndim == 1:
        return line_gaps(sampled)
    density = uniform_filter(sampled.astype(float), NEIGHBOURHOOD, mode="nearest")
    return np.asarray(sampled / np.maximum(density, 1 / NEIGHBOURHOOD**2))


def sense_image(operator: Operator, y: Tensor, sigma: Tensor, acceleration: float) -> FirstImage:
    """SENSE with the ridge that suits noise of SD ``sigma`` ``[B, 1, 1, 1]`` per component."""
    seen = operator.support()
    pixels = float(y[0, 0].numel()) if seen is None else seen.sum(dim=(1, 2, 3)).view(-1, 1, 1, 1)
    sampled = operator.sampled()
    numbers = y[0].numel() if sampled is None else int(sampled.expand_as(y[:1]).sum())
    noise = numbers * sigma**2  # E ||n||^2
    tiny = torch.finfo(y.dtype).tiny
    energy = (dot(y, y) - noise).clamp_min(tiny) * acceleration / pixels  # of a pixel
    ridge = (2 * sigma**2 / energy).clamp(LEAST_RIDGE * operator.norm() ** 2, 1.0)
    rhs = operator.adjoint(y)
    image = conjugate_gradients(
        lambda x: operator.adjoint(operator.forward(x)) + ridge * x,
        rhs,
        torch.zeros_like(rhs),
        STEPS,
    )
    left = operator.forward(image) - y
    beyond = ((dot(left, left) - noise).clamp_min(0) / dot(y, y).clamp_min(tiny)).sqrt()
    worst = int(beyond.argmax())
    share = (noise / dot(y, y).clamp_min(tiny)).sqrt().flatten()[worst]
    source = f"the image of {STEPS} steps of SENSE"
    return FirstImage(image, source, float(beyond.flatten()[worst]), float(share))
