"""Which of the measured views to keep: a scan can be thinned, never added to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.physics.view_weights import arc
from engine.spec.errors import RequestError

TURN = 360.0


def select_views(
    angles_rad: NDArray[np.float64],
    views: int | None = None,
    angular_range: float | None = None,
    start_angle: float | None = None,
) -> NDArray[np.intp]:
    """Indices of the kept views, in their measured order.

    The wanted angles are start + i range / views (degrees, counter-clockwise); each gets the
    measured view nearest to it. Without ``views`` every view of the arc is kept; without a
    start the arc begins where the measured one does.
    """
    count = len(angles_rad)
    if views is not None and views > count:
        raise RequestError(f"⟦views⟧ {views}: only {count} views were measured.")
    if angular_range is None and start_angle is None and views in (None, count):
        return np.arange(count)
    measured = _MeasuredArc(angles_rad)
    start = measured.begin if start_angle is None else start_angle
    span = measured.rest_from(start) if angular_range is None else angular_range
    measured.check(start, span)
    ahead = measured.ahead(np.rad2deg(angles_rad), start)
    inside = np.flatnonzero(ahead < span - measured.step / 2 + 1e-6)
    if views is None:
        return inside
    if views > inside.size:
        raise RequestError(f"⟦views⟧ {views}: only {inside.size} were measured in that arc.")
    order = inside[np.argsort(ahead[inside], kind="stable")]
    wanted = np.arange(views) * (span / views)
    chosen = np.abs(ahead[order][None, :] - wanted[:, None]).argmin(axis=1)
    if np.unique(chosen).size < views:  # unevenly spaced views: spread over their order instead
        chosen = np.round(np.arange(views) * (order.size / views)).astype(int)
    return np.sort(order[chosen])


def measured_arc(angles_rad: NDArray[np.float64]) -> tuple[float, float]:
    """Where the views begin and how far they reach, in degrees."""
    measured = _MeasuredArc(angles_rad)
    return measured.begin, measured.span


class _MeasuredArc:
    """Where the views begin, how far they reach and how far apart they are, in degrees."""

    def __init__(self, angles_rad: NDArray[np.float64]) -> None:
        steps, begin, span = arc(angles_rad, 2 * math.pi)
        self.step = math.degrees(float(np.median(steps)))
        self.span = math.degrees(span)
        self.full_turn = span > 2 * math.pi - 1e-9
        # arc() reaches half a step beyond the first view of an open arc; a full turn begins
        # with the view that was taken first
        open_begin = math.degrees(begin) + self.step / 2
        self.begin = math.degrees(angles_rad[0]) if self.full_turn else open_begin

    def ahead(self, degrees: NDArray[np.float64], start: float) -> NDArray[np.float64]:
        """0 .. 360 counter-clockwise from ``start``; up to half a step before it is below 0."""
        slack = self.step / 2 - 1e-9
        return np.mod(degrees - start + slack, TURN) - slack

    def rest_from(self, start: float) -> float:
        if self.full_turn:
            return self.span
        return self.span - float(self.ahead(np.array(start), self.begin))

    def check(self, start: float, span: float) -> None:
        if span > self.span + self.step / 2:
            raise RequestError(
                f"⟦angular_range⟧ {span:g}: the views cover {self.span:.4g} degrees only."
            )
        if span <= 0 or span > self.rest_from(start) + 0.75 * self.step:
            raise RequestError(
                f"Not all views from {start:g} to {start + max(span, 0):g} degrees were measured: "
                f"the scan goes from {self.begin:.4g} to {self.begin + self.span:.4g}."
            )
