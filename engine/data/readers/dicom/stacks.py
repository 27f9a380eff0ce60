"""Stacks that share a series: acquisitions, phases, echoes, b-values, time points, kernels.

A scanner often writes into one series what covers the same places several times. Sorted by place,
such images alternate from slice to slice. They are told apart by the tag that explains why a place
holds several images. Where no place does, nothing is split: in an ordinary series times and
acquisition numbers differ from slice to slice, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from engine.data.readers.dicom.geometry import SAME_PLACE_MM, consistent_groups
from engine.data.readers.dicom.image import MARKS, Mark, SliceImage

WORDS = {
    "EchoTime": "echo",
    "DiffusionBValue": "b-value",
    "DiffusionGradientOrientation": "direction",
    "TemporalPositionIdentifier": "time point",
    "ConvolutionKernel": "kernel",
    "ImageType": "image type",
    "AcquisitionNumber": "acquisition",
    "TriggerTime": "phase",
    "AcquisitionTime": "acquisition",
    "ContentTime": "repeat",
    "InstanceNumber": "repeat",
}
NUMBERS: dict[str, Callable[[float], str]] = {  # the only values that are repeated in a label
    "EchoTime": lambda ms: f" (TE {ms:g} ms)",
    "DiffusionBValue": lambda b: f" (b = {b:g})",
}
BY_TURN = ("AcquisitionNumber", "TriggerTime", "AcquisitionTime", "ContentTime", "InstanceNumber")
BY_OVERLAP = MARKS[: MARKS.index("AcquisitionTime") + 1]
MOST_INTERLEAVED = 10  # stacks whose places lie between each other's
FEWEST_SLICES = 3  # of a stack that is told by its even spacing alone
EVEN = 0.05  # of the spacing; a stack's steps vary by less


@dataclass(frozen=True)
class Part:
    """One stack of a series; ``label`` and ``keyword`` are empty when it is all of it."""

    slices: list[SliceImage]
    label: str = ""  # such as 'acquisition 2 of 3'
    keyword: str = ""  # the DICOM tags that tell it from the others


@dataclass(frozen=True)
class _Place:
    """Where an image lies: its geometry (size, orientation, kind of number) and its height."""

    geometry: int
    number: int  # along the normal, from 0
    height: float


Placed = list[tuple[SliceImage, _Place]]


def split_stacks(slices: Sequence[SliceImage]) -> list[Part]:
    """The stacks of one series, or all of it as one."""
    images = [image for image in slices if image.placement and not image.is_localizer]
    placed = _places(images)
    if len({place.number for _, place in placed}) < 2:
        return [Part(list(slices))]  # time points of one place are no stacks, but one sequence
    parts = _separate(placed)
    if len(parts) < 2:
        return [Part(list(slices))]
    used = {id(image) for part in parts for image in part.slices}
    rest = [image for image in slices if id(image) not in used]
    return parts + ([Part(rest, "other images")] if rest else [])


def _places(images: Sequence[SliceImage]) -> Placed:
    placed: Placed = []
    for geometry, group in enumerate(consistent_groups(images)):
        assert group[0].placement is not None
        normal = np.array(group[0].placement.normal)
        heights = [float(normal @ image.placement.position) for image in group if image.placement]
        order = sorted(range(len(group)), key=heights.__getitem__)
        number = 0
        for before, index in zip([order[0], *order], order, strict=False):
            number += heights[index] - heights[before] > SAME_PLACE_MM
            placed.append((group[index], _Place(geometry, number, heights[index])))
    return placed


def _separate(placed: Placed) -> list[Part]:
    most = _most(placed)
    for keyword in MARKS:
        if most > 1:
            groups = _by_value(placed, keyword, most) or _by_turn(placed, keyword, most)
        else:
            groups = _by_overlap(placed, keyword)
        if not groups:
            continue
        parts = []
        for number, (value, group) in enumerate(groups, 1):
            label = f"{WORDS[keyword]} {number} of {len(groups)}"
            if isinstance(value, float) and keyword in NUMBERS:
                label += NUMBERS[keyword](value)
            for part in _separate(group):
                labels = ", ".join(filter(None, (part.label, label)))  # the finest first
                words = dict.fromkeys([keyword, *part.keyword.split(", ")])
                parts.append(Part(part.slices, labels, ", ".join(filter(None, words))))
        return parts
    return [Part([image for image, _ in placed])]


Groups = list[tuple[Mark, Placed]]


def _by_value(placed: Placed, keyword: str, most: int) -> Groups:
    """One group for each value, when every value covers the places (about) once."""
    groups = _values(placed, keyword)
    if keyword == "InstanceNumber" or not 2 <= len(groups) <= 2 * most:
        return []
    if any(_most(group) >= most for _, group in groups):
        return []
    if len(groups) > most and any(len(group) < FEWEST_SLICES for _, group in groups):
        return []  # it differs from slice to slice
    covered = [{(p.geometry, p.number) for _, p in group} for _, group in groups]
    same = any(len(a & b) > 0.5 * min(len(a), len(b)) for a, b in combinations(covered, 2))
    return groups if same else []


def _by_turn(placed: Placed, keyword: str, most: int) -> Groups:
    """The first image of every place, the second of every place, and so on.

    Only when the places were covered one time after the other: a turn ends before the next one
    begins. Of instance numbers also when one place's images are all numbered before another's.
    """
    if keyword not in BY_TURN:
        return []
    places: dict[tuple[int, int], Placed] = {}
    for entry in placed:
        if _mark(entry[0], keyword) is None:
            return []
        places.setdefault((entry[1].geometry, entry[1].number), []).append(entry)
    turns: list[Placed] = [[] for _ in range(most)]
    spans: list[tuple[float, float]] = []
    for entries in places.values():
        entries.sort(key=lambda entry: _number(entry, keyword))
        numbers = [_number(entry, keyword) for entry in entries]
        if any(a == b for a, b in pairwise(numbers)):
            return []
        spans.append((numbers[0], numbers[-1]))
        for turn, entry in zip(turns, entries, strict=False):
            turn.append(entry)
    place_by_place = (
        keyword == "InstanceNumber"
        and len(placed) == most * len(places)
        and all(a[1] < b[0] for a, b in pairwise(sorted(spans)))
    )
    if not place_by_place and not all(_ends_before(a, b, keyword) for a, b in pairwise(turns)):
        return []
    return [(None, turn) for turn in turns]


def _ends_before(first: Placed, second: Placed, keyword: str) -> bool:
    for geometry in {place.geometry for _, place in second}:
        a = [_number(entry, keyword) for entry in first if entry[1].geometry == geometry]
        b = [_number(entry, keyword) for entry in second if entry[1].geometry == geometry]
        if max(a) >= min(b):
            return False
    return True


def _by_overlap(placed: Placed, keyword: str) -> Groups:
    """Groups whose places lie between each other's, each evenly spaced, and together not.

    Nothing is in the same place here. Even spacing tells the stacks from an ordinary series
    whose slices were measured in several passes.
    """
    if keyword not in BY_OVERLAP:
        return []
    groups = _values(placed, keyword)
    if not 2 <= len(groups) <= MOST_INTERLEAVED:
        return []
    if any(len(group) < FEWEST_SLICES or _unevenness(group) > EVEN for _, group in groups):
        return []
    if not any(_overlap(a, b) for (_, a), (_, b) in combinations(groups, 2)):
        return []
    return groups if _unevenness(placed) > 2 * EVEN else []


def _overlap(first: Placed, second: Placed) -> bool:
    """More than half of the shorter one's length is covered by the other one, too."""
    if first[0][1].geometry != second[0][1].geometry:
        return False
    a, b = _heights(first), _heights(second)
    common = min(a[-1], b[-1]) - max(a[0], b[0])
    return bool(common > 0.5 * min(a[-1] - a[0], b[-1] - b[0]))


def _unevenness(placed: Placed) -> float:
    """How much the steps vary, in steps; infinite for a mixture of geometries."""
    if len({place.geometry for _, place in placed}) > 1:
        return np.inf
    steps = np.diff(_heights(placed))
    return float((steps.max() - steps.min()) / np.median(steps)) if len(steps) else 0.0


def _heights(placed: Placed) -> np.ndarray:
    return np.sort([place.height for _, place in placed])


def _values(placed: Placed, keyword: str) -> Groups:
    """By value; numbers rising, words in the order of the images."""
    groups: dict[Mark, Placed] = {}
    for entry in sorted(placed, key=lambda entry: entry[0].instance_number):
        groups.setdefault(_mark(entry[0], keyword), []).append(entry)
    rising = all(isinstance(value, float) for value in groups)
    keys: Iterable[Mark] = sorted(groups, key=lambda v: float(v or 0)) if rising else groups
    return [(value, groups[value]) for value in keys]


def _most(placed: Placed) -> int:
    """How many images the fullest place holds."""
    counts: dict[tuple[int, int], int] = {}
    for _, place in placed:
        key = place.geometry, place.number
        counts[key] = counts.get(key, 0) + 1
    return max(counts.values(), default=0)


def _mark(image: SliceImage, keyword: str) -> Mark:
    return image.marks[MARKS.index(keyword)]


def _number(entry: tuple[SliceImage, _Place], keyword: str) -> float:
    value = _mark(entry[0], keyword)
    return value if isinstance(value, float) else 0.0
