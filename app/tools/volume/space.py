"""How a volume's voxels lie in the three cuts: which way up, how far apart, which letters.

Slices as they were acquired are shown as everywhere else. The two cuts across them are turned
the usual way: the head or the front up, the patient's right or front to the left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.data.dataset import Placement
    from engine.data.images.slab import Slab

Voxel = tuple[int, int, int]  # slice, row, column, each counted from 0
Vector = tuple[float, float, float]

# DICOM's patient axes: x to the left, y to the back, z to the head
_ACROSS: Final = ("Sagittal", "Coronal", "Axial")  # the cut across each of them
_DOWN: Final = (1.0, 1.0, -1.0)  # which way each points when it is drawn downwards


@dataclass(frozen=True)
class Thick:
    """How a cut is thickened; ``how`` None leaves it one plane thin."""

    how: Slab | None = None
    mm: float = 10.0


ONE: Final = Thick()
UNPLACED: Final = ("Slices", "Across rows", "Across columns")


@dataclass(frozen=True)
class Cut:
    """One of three pictures: voxel axis ``down`` runs down, ``right`` to the right."""

    name: str
    axis: int  # of the volume, that the cut is across: 0 slice, 1 row, 2 column
    down: int
    right: int
    flip_down: bool = False
    flip_right: bool = False
    pixel_mm: tuple[float, float] = (1.0, 1.0)  # down, right
    placement: Placement | None = None  # for the letters; its position means nothing
    step_mm: float = 1.0  # to the next cut

    def span(self, voxel: Voxel, shape: Sequence[int], slab: Thick = ONE) -> range:
        """The planes that a slab around ``voxel`` takes in, as far as there are any."""
        count = max(1, round(slab.mm / self.step_mm)) if slab.how is not None else 1
        first = voxel[self.axis] - (count - 1) // 2
        return range(max(first, 0), min(first + count, shape[self.axis]))

    def picture(self, volume: np.ndarray, voxel: Voxel, slab: Thick = ONE) -> np.ndarray:
        """The cut through ``voxel``, as it is drawn; a copy."""
        span = self.span(voxel, volume.shape, slab)
        return self.project(volume, span, slab.how if len(span) > 1 else None)

    def project(
        self, volume: np.ndarray, planes: Sequence[int] | range, how: Slab | None
    ) -> np.ndarray:
        """These planes as one picture; without ``how`` the first of them."""
        if how is None:
            plane = np.array(np.moveaxis(volume, self.axis, 0)[planes[0]], np.float32)
        else:
            from engine.data.images.slab import project

            whole = isinstance(planes, range)
            along = slice(planes[0], planes[-1] + 1) if whole else list(planes)
            at = (slice(None),) * self.axis
            plane = project(volume[(*at, along)], self.axis, how)
        if self.down > self.right:
            plane = plane.T
        return plane[:: -1 if self.flip_down else 1, :: -1 if self.flip_right else 1]

    def pixel(self, voxel: Voxel, shape: Sequence[int]) -> tuple[int, int]:
        """(column, row) of the picture where ``voxel`` is."""
        return (
            _turned(voxel[self.right], shape[self.right], self.flip_right),
            _turned(voxel[self.down], shape[self.down], self.flip_down),
        )

    def voxel(self, pixel: tuple[int, int], now: Voxel, shape: Sequence[int]) -> Voxel:
        """The voxel at (column, row) of the picture; the cut itself stays where it is."""
        found = list(now)
        found[self.right] = _turned(pixel[0], shape[self.right], self.flip_right)
        found[self.down] = _turned(pixel[1], shape[self.down], self.flip_down)
        return found[0], found[1], found[2]

    def edges_mm(self, axis: int, planes: range, shape: Sequence[int]) -> tuple[float, float]:
        """Between which places of the picture, in mm from its centre, planes of an axis lie."""
        down = axis == self.down
        flipped = self.flip_down if down else self.flip_right
        ends = (planes[0], planes[-1])
        first, last = sorted(_turned(end, shape[axis], flipped) for end in ends)
        pixel, half = self.pixel_mm[0 if down else 1], shape[axis] / 2
        return (first - half) * pixel, (last + 1 - half) * pixel

    def centre_mm(self, voxel: Voxel, shape: Sequence[int]) -> tuple[float, float]:
        """The middle of ``voxel`` in mm from the centre of the picture."""
        column, row = self.pixel(voxel, shape)
        return (
            (column + 0.5 - shape[self.right] / 2) * self.pixel_mm[1],
            (row + 0.5 - shape[self.down] / 2) * self.pixel_mm[0],
        )


def cuts_of(
    placements: Sequence[Placement] | None,
    pixel_mm: tuple[float, float] | None,
    slice_mm: float | None = None,
) -> tuple[Cut, Cut, Cut]:
    """The three cuts of slices that lie at ``placements``, in their order.

    Without placements and without ``slice_mm`` nobody knows how far apart slices are: voxels are
    then drawn as cubes.
    """
    rows_mm, columns_mm = pixel_mm or (1.0, 1.0)
    if not placements:
        sizes = (slice_mm or columns_mm, rows_mm, columns_mm)
        return (
            Cut(UNPLACED[0], 0, 1, 2, pixel_mm=(sizes[1], sizes[2]), step_mm=sizes[0]),
            Cut(UNPLACED[1], 1, 0, 2, pixel_mm=(sizes[0], sizes[2]), step_mm=sizes[1]),
            Cut(UNPLACED[2], 2, 0, 1, pixel_mm=(sizes[0], sizes[1]), step_mm=sizes[2]),
        )
    first = placements[0]
    ways = (_stacked(placements), first.along_column, first.along_row)
    sizes = (_spacing_mm(placements, columns_mm), *first.spacing_mm)
    return (
        _cut(0, 1, 2, (False, False), ways, sizes),
        _turned_cut(1, (0, 2), ways, sizes),
        _turned_cut(2, (0, 1), ways, sizes),
    )


def _turned_cut(
    axis: int, others: tuple[int, int], ways: Sequence[Vector], sizes: Sequence[float]
) -> Cut:
    """Whatever is nearer to head and feet runs down, then front and back."""
    right, down = sorted(others, key=lambda n: _main(ways[n]))
    flips = tuple(
        ways[n][_main(ways[n])] * wanted < 0
        for n, wanted in ((down, _DOWN[_main(ways[down])]), (right, 1.0))
    )
    return _cut(axis, down, right, (flips[0], flips[1]), ways, sizes)


def _cut(
    axis: int,
    down: int,
    right: int,
    flips: tuple[bool, bool],
    ways: Sequence[Vector],
    sizes: Sequence[float],
) -> Cut:
    from engine.data.dataset import Placement  # with torch: it is loaded by now

    placement = Placement(
        (0.0, 0.0, 0.0),
        _signed(ways[right], flips[1]),
        _signed(ways[down], flips[0]),
        (sizes[down], sizes[right]),
    )
    name = _ACROSS[_main(ways[axis])]
    pixel_mm = (sizes[down], sizes[right])
    return Cut(name, axis, down, right, *flips, pixel_mm, placement, sizes[axis])


def _stacked(placements: Sequence[Placement]) -> Vector:
    """The direction of rising slice number."""
    first, last = placements[0], placements[-1]
    step = [b - a for a, b in zip(first.position, last.position, strict=True)]
    length = math.hypot(*step)
    if not length:
        return first.normal
    return step[0] / length, step[1] / length, step[2] / length


def _spacing_mm(placements: Sequence[Placement], otherwise: float) -> float:
    """The mean distance of neighbours."""
    apart = math.dist(placements[0].position, placements[-1].position)
    if apart and len(placements) > 1:
        return apart / (len(placements) - 1)
    return placements[0].thickness_mm or otherwise


def _main(way: Vector) -> int:
    return max(range(3), key=lambda n: abs(way[n]))


def _signed(way: Vector, flipped: bool) -> Vector:
    x, y, z = way
    return (-x, -y, -z) if flipped else (x, y, z)


def _turned(index: int, count: int, flipped: bool) -> int:
    return count - 1 - index if flipped else index
