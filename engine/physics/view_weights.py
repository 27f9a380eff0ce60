"""How much every view, and every ray of it, counts in a filtered back-projection."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.physics.geometry import CTGeometry

SAME_ANGLE_RAD = 1e-6


def view_weights(geometry: CTGeometry, weighting: str) -> NDArray[np.float64]:
    """Weights that broadcast over ``[views, detectors]``.

    Over a complete set of directions they integrate to pi, the half turn in which every line
    of the plane is met once.
    """
    if geometry.kind == "fan":
        steps, start, span = arc(np.array(geometry.angles_rad), 2 * math.pi)
        if span < 2 * math.pi:
            redundancy = _parker(geometry, start, span)
            if redundancy is not None:
                return steps[:, None] * redundancy
            # Less than a short scan: no ray has its opposite, each one counts fully.
        else:
            steps = steps / 2
    else:
        # Opposite parallel views are the same view, so angles count modulo half a turn.
        steps, _, _ = arc(np.array(geometry.angles_rad), math.pi)
    if weighting == "mean":
        steps = np.full(geometry.views, math.pi / geometry.views)
    return steps[:, None]


def arc(angles_rad: NDArray[np.float64], period: float) -> tuple[NDArray[np.float64], float, float]:
    """The angle every view stands for, where the arc of views starts, and how long it is.

    A view reaches half-way to its neighbours. A gap much wider than the usual one is a part
    that was not scanned, and the views beside it reach half a usual gap into it. Views at the
    same angle share.
    """
    turned = np.mod(angles_rad, period)
    turned = np.where(turned > period - SAME_ANGLE_RAD, turned - period, turned)
    order = np.argsort(turned, kind="stable")
    ordered = turned[order]
    group = np.concatenate([[0], np.cumsum(np.diff(ordered) > SAME_ANGLE_RAD)])
    distinct = ordered[np.searchsorted(group, np.arange(group[-1] + 1))]
    gaps = np.diff(distinct, append=distinct[0] + period)  # gap after each distinct angle
    usual = float(np.median(gaps[:-1])) if gaps.size > 2 else float(gaps.min())
    hole = gaps > 4 * usual
    reach = np.where(hole, usual, gaps)
    weights = (reach + np.roll(reach, 1)) / 2
    share = weights[group] / np.bincount(group)[group]
    steps = np.empty_like(share)
    steps[order] = share
    if not hole.any():
        return steps, float(distinct[0]), period
    begin = (int(np.argmax(gaps)) + 1) % gaps.size
    return steps, float(distinct[begin] - usual / 2), float(period - gaps.max() + usual)


def _parker(geometry: CTGeometry, start: float, span: float) -> NDArray[np.float64] | None:
    """Smooth weights which make a ray and its opposite count once together, or None.

    D. L. Parker, Med. Phys. 9 (1982) 254, with the overscan used in full: the ramps are as
    long as the arc allows. None if the arc is shorter than half a turn plus the fan.
    """
    assert geometry.source_origin_mm is not None
    assert geometry.source_detector_mm is not None
    gamma = np.arctan(geometry.detector_mm() / geometry.source_detector_mm)
    # Rays that miss the image do not have to be complete.
    needed = min(
        float(np.abs(gamma).max()), math.asin(geometry.radius_mm / geometry.source_origin_mm)
    )
    half = (span - math.pi) / 2
    if half < needed - SAME_ANGLE_RAD:
        return None
    gamma = np.clip(gamma, -half, half)
    beta = np.mod(np.array(geometry.angles_rad) - start, 2 * math.pi)[:, None]
    # The ray (beta, gamma) is met again at (beta + pi - 2 gamma, -gamma).
    tiny = 1e-12
    rise = np.clip(beta / np.maximum(2 * (half + gamma), tiny), 0.0, 1.0)
    fall = np.clip((span - beta) / np.maximum(2 * (half - gamma), tiny), 0.0, 1.0)
    return np.sin(math.pi / 2 * rise) ** 2 * np.sin(math.pi / 2 * fall) ** 2
