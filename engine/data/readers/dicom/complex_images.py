"""MR images that belong together as complex numbers: magnitude and phase, real and imaginary.

Scanners write the parts as separate images, often as separate series of the same study. They are
put together only when their slices have the same places, size and echo time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.readers.dicom.geometry import SAME_PLACE_MM, consistent_groups, sort_along_normal
from engine.data.readers.dicom.image import SliceImage
from engine.data.readers.dicom.pixels import read_slice
from engine.data.readers.dicom.series import Series

PARTNER = {"M": "P", "": "P", "P": "M", "R": "I", "I": "R"}
NAMES = {"": "magnitude", "M": "magnitude", "P": "phase", "R": "real", "I": "imaginary"}


@dataclass(frozen=True)
class PhaseScale:
    """phase in radians = factor * rescaled value + offset."""

    factor: float
    offset: float
    origin: str
    assumed: bool = False


def main_component(slices: Sequence[SliceImage]) -> tuple[list[SliceImage], str]:
    """What a series is mainly of; phase only when there is nothing else."""
    parts: dict[str, list[SliceImage]] = {}
    for image in slices:
        parts.setdefault(image.component, []).append(image)
    signal = [part for part in ("M", "", "R", "I") if part in parts]
    chosen = max(signal, key=lambda name: len(parts[name])) if signal else "P"
    return parts[chosen], chosen


def find_partner(
    slices: Sequence[SliceImage], component: str, series: Series, all_series: Sequence[Series]
) -> tuple[list[SliceImage], Series, int] | None:
    """The slices that complete these, their series and how many others would do as well."""
    wanted = PARTNER[component]
    fitting: list[tuple[list[SliceImage], Series]] = []
    for other in all_series:
        if other.study != series.study or not other.slices:
            continue
        pool = [image for image in other.slices if (image.component or "M") == wanted]
        for group in consistent_groups(pool):
            if (ordered := _in_same_places(group, slices)) is not None:
                fitting.append((ordered, other))
    if not fitting:
        return None

    def distance(candidate: tuple[list[SliceImage], Series]) -> tuple[bool, bool, int]:
        other = candidate[1]
        gap = (other.series_number or 0) - (series.series_number or 0)
        return other is not series, other.part != series.part, abs(gap)

    best = min(fitting, key=distance)
    as_near = [c for c in fitting if distance(c)[:2] == distance(best)[:2]]
    return best[0], best[1], len(as_near) - 1


def _in_same_places(
    group: Sequence[SliceImage], slices: Sequence[SliceImage]
) -> list[SliceImage] | None:
    """``group`` in the order of ``slices`` when both lie in the same places."""
    if len(group) != len(slices) or group[0].size != slices[0].size:
        return None
    if any(image.placement is None for image in (*group, *slices)):
        return None
    ordered, _ = sort_along_normal(group)
    for a, b in zip(ordered, slices, strict=True):
        assert a.placement is not None
        assert b.placement is not None
        places = np.subtract(a.placement.position, b.placement.position)
        rows = np.subtract(a.placement.along_row, b.placement.along_row)
        columns = np.subtract(a.placement.along_column, b.placement.along_column)
        spacing = np.subtract(a.placement.spacing_mm, b.placement.spacing_mm)
        if np.abs(places).max() > SAME_PLACE_MM or a.echo_time != b.echo_time:
            return None
        if max(np.abs(rows).max(), np.abs(columns).max(), np.abs(spacing).max()) > 1e-3:
            return None
    return ordered


def phase_scale(image: SliceImage) -> PhaseScale:
    """How a phase image counts its angles: no element says so, so its range has to tell.

    Philips and GE write milliradians; Siemens writes 2 * stored - 4096 with 4096 for half a turn.
    """
    low, high = image.pixels.stored_range
    rescale = image.rescale
    step = abs(rescale.slope)
    ends = sorted(rescale.slope * stored + rescale.intercept for stored in (low, high))
    span = ends[1] - ends[0] + step
    is_plain = not rescale.stated or (rescale.slope == 1 and rescale.intercept == 0)
    if "RAD" in rescale.type:
        factor = 1e-3 if rescale.type.startswith("M") else 1.0
        return PhaseScale(factor, 0.0, f"RescaleType {rescale.type[:16]}")
    for factor, name in ((1.0, "radians"), (1e-3, "milliradians")):
        if abs(span * factor - 2 * math.pi) < 0.02 * 2 * math.pi:
            return PhaseScale(factor, 0.0, f"{name}: the rescaled range is one turn")
    if not is_plain and abs(ends[0] + ends[1]) <= 0.02 * span:
        return PhaseScale(2 * math.pi / span, 0.0, "the rescaled range is one turn about zero")
    largest = float(np.abs(read_slice(image, "MR")).max())
    if image.pixels.signed and 1000 < largest <= 3142:
        return PhaseScale(1e-3, 0.0, "milliradians: no value is above 3142", assumed=True)
    factor = 2 * math.pi / span
    middle = ends[0] + span / 2
    return PhaseScale(factor, -factor * middle, "the range of BitsStored is one turn", assumed=True)


def combine(first: np.ndarray, second: np.ndarray, component: str, scale: PhaseScale) -> np.ndarray:
    """Complex numbers from a slice and its partner; ``component`` is what ``first`` is."""
    if component in ("R", "I"):
        real, imaginary = (first, second) if component == "R" else (second, first)
        return (real + 1j * imaginary).astype(np.complex64)
    magnitude, phase = (second, first) if component == "P" else (first, second)
    angle = scale.factor * phase.astype(np.float64) + scale.offset
    return (magnitude * np.exp(1j * angle)).astype(np.complex64)
