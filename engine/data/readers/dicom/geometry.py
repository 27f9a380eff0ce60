"""Which slices make one stack, in which order, and what is odd about it.

Slices are ordered by their position along the normal of the image plane, never by
InstanceNumber, which scanners and archives number as they like. Whatever does not fit is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.dataset import Check
from engine.data.readers.dicom.image import SliceImage

ANGLE = 1e-3  # directions that differ by less are one orientation
SAME_PLACE_MM = 0.01
TILT_DEGREES = 0.1
MAX_LISTED = 5
VOLUME_ONLY = "Slice by slice nothing is wrong; a volume of these slices is distorted there."


@dataclass(frozen=True)
class Stack:
    """Slices in order, with what was found on the way."""

    slices: list[SliceImage]
    spacing_mm: float | None  # between neighbours, when they have positions
    checks: list[Check]
    copies: int = 0  # images that only repeated another one and were left out


def make_stack(slices: Sequence[SliceImage], modality: str) -> Stack:
    """The largest consistent stack among the slices of one series."""
    checks: list[Check] = []
    kept = _without_localizers(list(slices), modality, checks)
    groups = consistent_groups(kept)
    group = max(groups, key=len)
    if len(groups) > 1:
        rest = len(kept) - len(group)
        reasons = ", ".join(_differences(group[0], groups))
        sentence = (
            f"{rest} of {len(kept)} slices differ in {reasons} and were left out; "
            f"the largest group of equal ones has {len(group)}."
        )
        fix = "To work on the others, put their files into a folder of their own."
        checks.append(Check("equal slices", "corrected", sentence, fix))
    else:
        sentence = "All slices have one size, pixel spacing and orientation."
        checks.append(Check("equal slices", "good", sentence))
    if group[0].placement is None:
        group = sorted(group, key=lambda image: (image.instance_number, str(image.pixels.path)))
        sentence = (
            "The slices do not say where they lie (position, orientation or pixel spacing is "
            "missing or wrong): they are in the order of InstanceNumber, without placement."
        )
        fix = "Look through the slices: their order may be wrong, and results have no position."
        return Stack(group, None, [*checks, Check("places", "doubtful", sentence, fix)])
    ordered, heights = sort_along_normal(group)
    spacing = _check_spacing(heights, checks)
    _check_tilt(ordered, modality, checks)
    return Stack(ordered, spacing, checks)


def consistent_groups(slices: Sequence[SliceImage]) -> list[list[SliceImage]]:
    """Equal in size, pixel spacing, orientation and (MR) kind of number; first come, first."""
    groups: list[list[SliceImage]] = []
    for image in slices:
        for group in groups:
            if not any(_unequal(image, group[0]).values()):
                group.append(image)
                break
        else:
            groups.append([image])
    return groups


def _unequal(a: SliceImage, b: SliceImage) -> dict[str, bool]:
    return {
        "size": a.size != b.size,
        "pixel spacing": not _close(a.spacing_mm, b.spacing_mm, 1e-3),
        "orientation": not _close(_directions(a), _directions(b), ANGLE),
        "kind (magnitude, phase, real, imaginary)": a.component != b.component,
    }


def _differences(first: SliceImage, groups: list[list[SliceImage]]) -> list[str]:
    names: dict[str, None] = {}
    for group in groups:
        for name, differs in _unequal(first, group[0]).items():
            if differs:
                names[name] = None
    return list(names)


def _directions(image: SliceImage) -> tuple[float, ...] | None:
    place = image.placement
    return None if place is None else place.along_row + place.along_column


def _close(a: tuple[float, ...] | None, b: tuple[float, ...] | None, tolerance: float) -> bool:
    if a is None or b is None:
        return a is b
    return all(abs(x - y) <= tolerance for x, y in zip(a, b, strict=True))


def sort_along_normal(group: Sequence[SliceImage]) -> tuple[list[SliceImage], np.ndarray]:
    """Slices and their heights in mm along the normal, both rising."""
    assert group[0].placement is not None
    normal = np.array(group[0].placement.normal)
    positions = np.array([image.placement.position for image in group if image.placement])
    heights = positions @ normal
    keys = [
        (round(float(height) / SAME_PLACE_MM), image.echo_time or 0.0, image.instance_number)
        for height, image in zip(heights, group, strict=True)
    ]
    order = sorted(range(len(group)), key=lambda i: (*keys[i], str(group[i].pixels.path)))
    return [group[i] for i in order], heights[order]


def _without_localizers(
    slices: list[SliceImage], modality: str, checks: list[Check]
) -> list[SliceImage]:
    kept = [image for image in slices if not image.is_localizer]
    if kept and len(kept) < len(slices):
        sentence = f"{len(slices) - len(kept)} localizer images were left out."
        checks.append(Check("localizers", "corrected", sentence))
    elif not kept:
        what = "projections" if modality == "CT" else "slices for planning"
        sentence = f"All images are localizers: {what}."
        checks.append(Check("localizers", "doubtful", sentence, "Choose another series."))
    return kept or slices


def same_places(heights: np.ndarray) -> list[list[int]]:
    """Numbers of slices that lie in one place, for every place with several; heights rise."""
    groups = np.split(np.arange(len(heights)), np.flatnonzero(np.diff(heights) > SAME_PLACE_MM) + 1)
    return [group.tolist() for group in groups if len(group) > 1]


def _check_spacing(heights: np.ndarray, checks: list[Check]) -> float | None:
    """The usual distance of neighbours; says what is missing, double or uneven."""
    repeats = same_places(heights)
    steps = np.diff(heights)
    numbers = np.flatnonzero(steps > SAME_PLACE_MM)
    if not len(numbers):
        if repeats:
            sentence = (
                f"All {len(heights)} slices lie in one place: echoes, time points or repeats, in "
                "the order of echo time and InstanceNumber. Neighbours are not next to each other."
            )
            fix = "Slice by slice nothing is wrong; do not make a volume of them."
            checks.append(Check("places", "doubtful", sentence, fix))
        return None
    if repeats:
        sentence = (
            f"{len(repeats)} {'place holds' if len(repeats) == 1 else 'places hold'} several "
            f"slices (up to {max(map(len, repeats))}), and no tag tells which stack each "
            "belongs to: neighbours may be of different times or acquisitions."
        )
        fix = "Put the files of one stack into a folder of their own and open that."
        checks.append(Check("places", "blocking", sentence, fix))
    else:
        checks.append(Check("places", "good", "Every slice has a place of its own."))
    spacing = float(np.median(steps[numbers]))
    gaps = [i for i in numbers if steps[i] > 1.5 * spacing]
    if gaps:
        missing = [round(float(steps[i]) / spacing) - 1 for i in gaps]
        listed = "; ".join(
            f"{n} between slices {i} and {i + 1}" for i, n in zip(gaps, missing, strict=True)
        )
        if len(gaps) > MAX_LISTED:
            listed = "; ".join(listed.split("; ")[:MAX_LISTED]) + "; and more"
        sentence = f"{sum(missing)} slices are missing: {listed} (counted from 0)."
        checks.append(Check("missing slices", "doubtful", sentence, VOLUME_ONLY))
    even = steps[[i for i in numbers if i not in set(gaps)]]
    if len(even) and even.max() - even.min() > max(0.02 * spacing, 2 * SAME_PLACE_MM):
        sentence = f"The slices are unevenly spaced: {even.min():.3g} to {even.max():.3g} mm."
        checks.append(Check("spacing", "doubtful", sentence, VOLUME_ONLY))
    elif not gaps:
        sentence = f"The slices are {spacing:.4g} mm apart, and none is missing."
        checks.append(Check("spacing", "good", sentence))
    return spacing


def _check_tilt(ordered: Sequence[SliceImage], modality: str, checks: list[Check]) -> None:
    """A tilted gantry: slices parallel, but stacked along another line than their normal."""
    first, last = ordered[0].placement, ordered[-1].placement
    assert first is not None
    assert last is not None
    line = np.subtract(last.position, first.position)
    length = float(np.linalg.norm(line))
    if length > SAME_PLACE_MM:
        cosine = min(abs(float(line @ np.array(first.normal))) / length, 1.0)
        if (angle := math.degrees(math.acos(cosine))) > TILT_DEGREES:
            sentence = (
                f"The slices are stacked at {angle:.1f} degrees to their normal (gantry tilt): "
                "each slice is right, but the volume is sheared."
            )
            checks.append(Check("gantry tilt", "doubtful", sentence, VOLUME_ONLY))
            return
    tilts = {round(image.tilt_degrees, 2) for image in ordered} - {0.0}
    if tilts:
        listed = ", ".join(f"{tilt:g}" for tilt in sorted(tilts)[:MAX_LISTED])
        sentence = f"The gantry was tilted by {listed} degrees (GantryDetectorTilt)."
        checks.append(Check("gantry tilt", "doubtful", sentence, VOLUME_ONLY))
    elif modality == "CT" and len(ordered) > 1:
        sentence = "The slices are stacked along their normal: the gantry was not tilted."
        checks.append(Check("gantry tilt", "good", sentence))
