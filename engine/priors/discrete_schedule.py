"""Noise levels of networks that were trained in numbered steps, and the step of a noise level.

Such a network sees x_t = sqrt(abar_t) x0 + sqrt(1 - abar_t) eps with abar_t the product of
(1 - beta) up to step t. Divided by sqrt(abar_t) that is x0 with noise of
sigma_t = sqrt((1 - abar_t) / abar_t), which is how the rest of the engine counts noise.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from engine.spec.errors import RequestError

SCHEDULES = ("linear", "scaled-linear", "cosine", "given")
FEWEST_STEPS, MOST_STEPS = 2, 10_000
NAMES = {"schedule", "steps", "beta_start", "beta_end", "betas"}


def linear_schedule(steps: int = 1000) -> dict[str, Any]:
    """The schedule of Ho et al. 2020: 1e-4 to 0.02 in 1000 steps, rescaled for other counts."""
    scale = 1000 / steps
    return {
        "schedule": "linear",
        "steps": steps,
        "beta_start": scale * 1e-4,
        "beta_end": scale * 0.02,
        "betas": [],
    }


def check_schedule(values: dict[str, Any]) -> None:
    """Raise RequestError unless ``sigmas`` can make a rising table from these."""
    if set(values) != NAMES:
        raise RequestError(f"The noise schedule needs {', '.join(sorted(NAMES))}.")
    if values["schedule"] not in SCHEDULES:
        raise RequestError(f"The noise schedule must be one of {', '.join(SCHEDULES)}.")
    steps, given = values["steps"], values["betas"]
    if type(steps) is not int or not FEWEST_STEPS <= steps <= MOST_STEPS:
        raise RequestError(f"The noise schedule needs {FEWEST_STEPS} to {MOST_STEPS} steps.")
    wanted = steps if values["schedule"] == "given" else 0
    if not isinstance(given, list) or len(given) != wanted:
        raise RequestError("The noise schedule's list of betas has the wrong length.")
    numbers = [values["beta_start"], values["beta_end"], *given]
    if not all(type(number) in (int, float) and 0 < number < 1 for number in numbers):
        raise RequestError("The noise schedule's betas must lie between 0 and 1.")


def sigmas(values: dict[str, Any]) -> Tensor:
    """sigma_t of every step, rising, in float64."""
    check_schedule(values)
    steps = values["steps"]
    options: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    start, end = values["beta_start"], values["beta_end"]
    if values["schedule"] == "linear":
        betas = torch.linspace(start, end, steps, **options)
    elif values["schedule"] == "scaled-linear":
        betas = torch.linspace(math.sqrt(start), math.sqrt(end), steps, **options).square()
    elif values["schedule"] == "cosine":
        # Nichol and Dhariwal 2021; the last betas are capped, else abar would reach 0
        time = torch.arange(steps + 1, **options) / steps
        abar = torch.cos((time + 0.008) / 1.008 * math.pi / 2).square()
        betas = (1 - abar[1:] / abar[:-1]).clamp(max=0.999)
    else:
        betas = torch.tensor(values["betas"], **options)
    # 1 - abar from the sum of logarithms keeps the digits that abar near 1 would lose
    log_abar = torch.log1p(-betas).cumsum(0)
    table = (torch.expm1(-log_abar)).sqrt()
    if not bool(table.isfinite().all()) or float(table[-1]) > 1e9:
        raise RequestError("The noise schedule reaches an infinite noise level.")
    return table


def step_of(log_sigma: Tensor, table: Tensor, nearest: bool) -> Tensor:
    """The step t of a noise level, as a float.

    Parameters
    ----------
    log_sigma
        ln(sigma), any shape.
    table
        ln(sigma_t), rising.
    nearest
        The closest whole step in ln(sigma), for networks with a learned table of steps.
        Otherwise linear interpolation of t over ln(sigma): the sines and cosines that encode t
        are smooth, so networks take fractional steps well. Beyond the table: its end.
    """
    inside = log_sigma.clamp(table[0], table[-1])
    above = torch.searchsorted(table, inside.contiguous()).clamp(1, len(table) - 1)
    low, high = table[above - 1], table[above]
    step = (above - 1) + (inside - low) / (high - low)
    return step.round() if nearest else step
