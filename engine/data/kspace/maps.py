"""Coil maps of a slice, from the best source there is, and a check of what they explain."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.data.dataset import Dataset
from engine.data.kspace.grid import KspaceSlice, Plane
from engine.data.kspace.scale import FirstImage
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
