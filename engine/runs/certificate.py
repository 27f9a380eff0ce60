"""Does the image fit the measurement as well as the noise allows?

chi^2 = sum of W (A x - y)^2 / sigma^2 over all measured numbers. For the true image it has the
chi-square distribution with as many degrees of freedom as there are numbers; none is taken off,
because the question is asked of an image, not of a fit with so many parameters. An image that
was fitted to the data comes out lower the more of their noise it has taken over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from engine.physics.problem import Problem

# How seldom the true image may be accused wrongly, on each side.
LEVEL = 0.001
# The noise level itself is known to about this share of its variance only: the weights of photon
# noise come from the noisy counts, and the logarithm bends their distribution.
NOISE_MARGIN = 0.05
# The same of a level that was estimated from the measurement: 10 % of the SD.
ESTIMATE_MARGIN = 0.2
# Without a noise level a view stands out when its residual is so many times the usual one.
STANDS_OUT = 3.0
EXACT_FIT = 1e-3  # relative residual below which noise-free data count as fitted

Verdict = Literal["fits", "worse", "closer", "fits exactly", "does not fit", "noise unknown"]


@dataclass(frozen=True)
class Certificate:
    """Of one slice. ``parts`` are views (CT), lines (MRI) or rows: their reduced chi^2 or,
    without a noise level, their relative residuals; None for a part that was not measured."""

    verdict: Verdict
    reduced: float | None  # chi^2 / degrees of freedom
    degrees: int
    low: float | None  # reduced chi^2 between these two is what noise explains
    high: float | None
    relative: float  # ||A x - y|| / ||y||, weighted
    part: str
    parts: tuple[float | None, ...]
    suspicious: tuple[int, ...]  # numbers of the parts that fit worse than noise explains
    margin: float = NOISE_MARGIN  # to which the variance of the noise is known

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reduced_chi2": self.reduced,
            "degrees_of_freedom": self.degrees,
            "noise_explains": None if self.low is None else [self.low, self.high],
            "level": LEVEL,
            "noise_margin": self.margin,
            "relative_residual": self.relative,
            "part": self.part,
            "parts": list(self.parts),
            "suspicious": list(self.suspicious),
        }


@torch.no_grad()
def certify(
    problem: Problem, image: Tensor, weights: Tensor | None = None, level: float = LEVEL
) -> list[Certificate]:
    """One certificate per slice; ``weights`` replace the problem's where those leave noise out."""
    weights = problem.weights if weights is None else weights
    measured = replace(problem, weights=weights).measured().cpu()
    # float64, which not every device has
    residual = problem.operator.forward_once(image) - problem.measurement
    squares = residual.cpu().double() ** 2
    sizes = problem.measurement.cpu().double() ** 2
    if weights is not None:
        squares, sizes = squares * weights.cpu(), sizes * weights.cpu()
    noise = torch.as_tensor(problem.noise_sigma, dtype=torch.float64).reshape(-1).cpu()
    noises = noise.expand(len(image)).tolist()
    part, axis = parts_of(problem)
    sums = [_sums(squares[i], sizes[i], measured[i], axis) for i in range(len(image))]
    if noise.max() > 0:
        estimated = problem.noise_origin.startswith("estimated")
        margin = ESTIMATE_MARGIN if estimated else NOISE_MARGIN
        return [
            _with_noise(*one, sd, part, level, margin) for one, sd in zip(sums, noises, strict=True)
        ]
    simulated = bool(problem.provenance.get("simulated", problem.reference is not None))
    return [_without_noise(*one, part, simulated) for one in sums]


def parts_of(problem: Problem) -> tuple[str, int]:
    """What the measurement consists of, and along which axis of ``[M, P, Q]``."""
    return problem.operator.part, problem.operator.part_axis


Sums = tuple[list[float], list[float], list[float]]  # residual, size and count of every part


def _sums(squares: Tensor, sizes: Tensor, measured: Tensor, axis: int) -> Sums:
    others = tuple(a for a in (-3, -2, -1) if a != axis)
    kept = (squares * measured, sizes * measured, measured.to(squares.dtype))
    residual, size, count = (values.sum(dim=others).tolist() for values in kept)
    return residual, size, count


def _with_noise(
    squares: list[float],
    sizes: list[float],
    counts: list[float],
    noise: float,
    part: str,
    level: float,
    margin: float,
) -> Certificate:
    chi2, degrees = [r / noise**2 for r in squares], int(sum(counts))
    low, high = limits(degrees, level, margin)
    reduced = sum(chi2) / max(1, degrees)
    verdict: Verdict = "worse" if reduced > high else "closer" if reduced < low else "fits"
    parts = tuple(c / n if n else None for c, n in zip(chi2, counts, strict=True))
    # The level is shared out, so that all parts together accuse the truth as seldom as one.
    share = level / max(1, sum(n > 0 for n in counts))
    highest = {n: limits(int(n), share, margin)[1] for n in set(counts)}
    bad = tuple(
        number
        for number, (value, n) in enumerate(zip(parts, counts, strict=True))
        if value is not None and value > highest[n]
    )
    relative = _ratio(sum(squares), sum(sizes))
    return Certificate(verdict, reduced, degrees, low, high, relative, part, parts, bad, margin)


def _without_noise(
    squares: list[float], sizes: list[float], counts: list[float], part: str, simulated: bool
) -> Certificate:
    """Residuals of parts are relative to a usual part, so that an empty one is no exception."""
    relative = _ratio(sum(squares), sum(sizes))
    usual = sum(sizes) / max(1, sum(n > 0 for n in counts))
    parts = [_ratio(r, usual) if n else None for r, n in zip(squares, counts, strict=True)]
    verdict: Verdict = "noise unknown"
    if simulated:
        verdict = "fits exactly" if relative < EXACT_FIT else "does not fit"
    degrees, found = int(sum(counts)), _standing_out(parts)
    return Certificate(verdict, None, degrees, None, None, relative, part, tuple(parts), found)


def limits(degrees: int, level: float = LEVEL, margin: float = NOISE_MARGIN) -> tuple[float, float]:
    """Between which the reduced chi^2 of the true image lies, but for ``level`` on each side."""
    from scipy.special import gammainccinv, gammaincinv  # scipy.stats takes a second to load

    # quantiles of the chi-square distribution, which is a gamma distribution
    n = max(1, degrees)
    low, high = (2 * float(inverse(n / 2, level)) / n for inverse in (gammaincinv, gammainccinv))
    return low * (1 - margin), high * (1 + margin)


def _standing_out(values: list[float | None]) -> tuple[int, ...]:
    known = sorted(value for value in values if value is not None)
    if not known:
        return ()
    usual = known[len(known) // 2]
    least = max(STANDS_OUT * usual, EXACT_FIT)
    return tuple(n for n, value in enumerate(values) if value is not None and value > least)


def _ratio(residual: float, size: float) -> float:
    return (residual / size) ** 0.5 if size > 0 else (residual > 0) * 1.0
