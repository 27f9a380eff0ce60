"""A first image within a second or two of Run: few calls at a low size, to be thrown away.

It is no part of the run: it has settings, random numbers and a problem of its own, is counted in
nothing and kept nowhere.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F

from engine.physics.coarse import coarse_operator
from engine.physics.problem import Problem
from engine.runs.frames import pictures_of
from engine.runs.prepare import Prepared, make_run, prepare
from engine.solvers.solver import DiffusionSettings

# Measured with DC-PnPDP on the demonstrations: six calls at 128 x 128 are as near to the truth as
# a run of 50 calls is at its eighth (CT, 20 views) to eleventh (MR, R = 6).
CALLS: Final = 6
SIDE: Final = 128  # pixels; a network does not know a body that is much smaller than that
SECONDS: Final = 1.5  # after which the calls so far must do
REPLACED_AT: Final = 0.5  # of the run's first noise level: from there its own image is better


@dataclass(frozen=True)
class Preview:
    """``image`` is ``[H, W]`` in HU or the MR scale, computed at 1/``factor`` of that size.

    It stands until the run's noise level has come down to ``until_sigma``.
    """

    image: np.ndarray
    factor: int
    until_sigma: float


def factor_for(prepared: Prepared) -> int:
    """How much coarser the preview is; 1 where a preview would not be worth its time."""
    settings, shape = prepared.settings, prepared.problem.operator.image_shape[1:]
    diffusion = isinstance(settings, DiffusionSettings) and prepared.prior is not None
    one_scan = len(prepared.problem.slices) == 1 and prepared.problem.operator.is_scan
    if not diffusion or not one_scan:
        return 1
    factor = max(shape) // SIDE
    while factor > 1 and any(side % factor for side in shape):
        factor -= 1
    # The run itself shows as much after as many calls as it takes to halve the noise level.
    own = settings.nfe / 7 * shape[0] * shape[1]  # type: ignore[attr-defined]
    return factor if own > 2 * CALLS * shape[0] * shape[1] / factor**2 else 1


def coarser(problem: Problem, factor: int) -> Problem:
    """The same measurement of an image of fewer pixels."""
    pixel = problem.pixel_mm
    return dataclasses.replace(
        problem,
        operator=coarse_operator(problem.operator, factor),
        reference=None,
        pixel_mm=None if pixel is None else (factor * pixel[0], factor * pixel[1]),
    )


def previews(prepared: Prepared) -> Iterator[Preview]:
    """Better and better ones; none where they are not worth it."""
    factor, began = factor_for(prepared), time.monotonic()
    if factor == 1:
        return
    problem, settings = prepared.problem, prepared.settings
    assert isinstance(settings, DiffusionSettings)
    quick = dataclasses.replace(settings, nfe=CALLS)
    job = dataclasses.replace(prepared.job, settings=quick.to_dict(), preset=None)
    with torch.no_grad():
        coarse = prepare(job, prepared.dataset, coarser(problem, factor), gate=False)
    for iteration in make_run(coarse):
        size = problem.operator.image_shape[1:]
        fine = F.interpolate(iteration.image, size=size, mode="bilinear", align_corners=False)
        image = pictures_of(problem, fine)[0]
        yield Preview(image, factor, REPLACED_AT * settings.sigma_max)
        if time.monotonic() - began > SECONDS:
            return
