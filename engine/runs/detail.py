"""How much of the edges of an image did the scan see, and how much did the prior supply?

The image is split as on the trust page (engine.workflows.trust.split): g is what changes the
measurement least, argmin ||A g||^2_W + lambda ||g - x||^2. Of energy a body has so much in its
smooth inside that g's share of it is small whatever is invented; edges are what is read. So the
sum of the gradients' magnitudes is compared, inside the body.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from engine.data.images.air import AIR_HU
from engine.metrics.profiles import body_mask
from engine.physics.problem import Problem
from engine.solvers.data_step import DataStep, DataStepSettings

FLOOR = 1e-5  # of ||A||^2: singular values below 0.3 % of the largest count as not measured
# Of conjugate gradients. With few views and the ramp filter the share is right to one or two
# hundredths, with a limited angle to five; the trust page solves to the end.
STEPS = 20


def origin_of(problem: Problem) -> float:
    """The value that leaves no trace in the measurement: air in CT, nothing in MRI.

    The split of an image depends on what is called zero, and a prior's zero is arbitrary.
    """
    if problem.modality != "CT":
        return 0.0
    return (AIR_HU - problem.intensity.offset) / problem.intensity.scale


def penalty_of(
    problem: Problem, image: Tensor, floor: float = FLOOR, signal: float | None = None
) -> Tensor:
    """lambda per slice: (noise SD / SD of the image)^2, or of a ``signal`` of another size."""
    if problem.operator.is_projection:
        # Its singular values are 0 and 1: the projection itself, whatever the noise.
        return image.new_zeros(len(image), 1, 1, 1)
    noise = torch.as_tensor(problem.noise_sigma).to(image)
    own = image.flatten(1).std(1).view(-1, 1, 1, 1).clamp_min(1e-6)
    size = own if signal is None else torch.full_like(own, signal)
    return ((noise / size) ** 2).clamp_min(floor * problem.operator.norm() ** 2)


@torch.no_grad()
def supplied_detail(problem: Problem, image: Tensor, steps: int = STEPS) -> list[float]:
    """The share of the edges that the scan did not see, per slice; nearly, in a few steps."""
    x, penalty = image - origin_of(problem), penalty_of(problem, image)
    nothing = dataclasses.replace(problem, measurement=torch.zeros_like(problem.measurement))
    settings = DataStepSettings(
        rho=1.0, cg_iterations=steps, cg_tolerance=0.0, discrepancy=False, cg_warm_start=False
    )
    guessed = DataStep(nothing, settings).nearest(x, penalty)
    return detail_shares(problem, image, x - guessed, guessed)


def detail_shares(
    problem: Problem, image: Tensor, measured: Tensor, guessed: Tensor
) -> list[float]:
    """The guessed part's share of the edges inside the body, per slice; of all without a body."""
    body = body_mask(image, problem.intensity)[..., :-1, :-1]
    body = body | ~body.flatten(1).any(1).view(-1, 1, 1, 1)
    seen, supplied = ((edges(part) * body).flatten(1).sum(1) for part in (measured, guessed))
    shares: list[float] = (supplied / (seen + supplied).clamp_min(1e-30)).tolist()
    return shares


def edges(image: Tensor) -> Tensor:
    """The magnitude of the gradient, ``[B, 1, H - 1, W - 1]``; of complex images of both parts."""
    corner = image[..., :-1, :-1]
    across, down = image[..., :-1, 1:] - corner, image[..., 1:, :-1] - corner
    return (across.square() + down.square()).sum(1, keepdim=True).sqrt()
