"""Rays of a parallel scan which are mirror images of each other.

A centred detector sees of the image turned by half a turn what it sees of the image, in reverse
order; a view 90 - t degrees sees of the transposed image what view t sees of the image; one at
180 - t of the image mirrored. So the weights of few rays, applied to the image in several
positions, are those of all: up to eight slices' worth of work with one look at every weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.geometry import CTGeometry

# What (x, y) is before the image is read there: x mirrored, y mirrored, then both exchanged.
Position = tuple[bool, bool, bool]
HALF_TURN: Final[list[Position]] = [(False, False, False), (True, True, False)]
GROUPS: Final[list[list[Position]]] = [
    [(x, y, swap) for swap in (False, True) for x in (False, True) for y in (False, True)],
    [*HALF_TURN, (False, False, True), (True, True, True)],
    [*HALF_TURN, (True, False, False), (False, True, False)],
    HALF_TURN,
]
SAME_ANGLE: Final = 1e-9  # radians
WORTH: Final = 0.75  # of the work is no repetition


@dataclass(frozen=True)
class Symmetry:
    """``chosen`` rays stand for all: in position l they are the rays ``seen[l]``.

    A ray that is none, or one that another already stands for, has the number of rays, ``rays``.
    """

    positions: list[Position]
    chosen: NDArray[np.int64]
    seen: Tensor  # [positions, chosen]
    rays: int

    @classmethod
    def of(cls, geometry: CTGeometry) -> Symmetry | None:
        """The largest group of positions that pays, or None."""
        shifted = geometry.detector_offset_mm, *geometry.centre_offset_mm
        if geometry.kind != "parallel" or any(shifted) or geometry.detectors < 2:
            return None
        for positions in GROUPS:
            if geometry.image_size[0] != geometry.image_size[1] and any(p[2] for p in positions):
                continue
            found = cls._with(positions, geometry)
            if found.rays > WORTH * found.seen.numel():
                return found
        return None

    @classmethod
    def _with(cls, positions: list[Position], geometry: CTGeometry) -> Symmetry:
        views, bins = geometry.views, geometry.detectors
        of_view = [_seen_views(geometry, position) for position in positions]
        free = np.ones((views, bins), dtype=bool)
        chosen, seen, nothing = [], [], views * bins
        lean = np.abs(np.sin(geometry.angles_rad)) >= np.abs(np.cos(geometry.angles_rad))
        # Steep rays first: where they can stand for all, nobody walks along columns.
        for view in np.argsort(lean, kind="stable"):
            while len(own := np.flatnonzero(free[view])):
                own = own[: (bins + 1) // 2] if len(own) == bins else own
                chosen.append(view * bins + own)
                rows = []
                for partner, reverse in of_view:
                    other = partner[view]
                    there = bins - 1 - own if reverse[view] else own
                    usable = free[other, there] & (other >= 0)
                    rows.append(np.where(usable, other * bins + there, nothing))
                    if other >= 0:
                        free[other, there] = False
                seen.append(np.stack(rows))
        everything = torch.from_numpy(np.concatenate(seen, axis=1))
        return cls(positions, np.concatenate(chosen), everything, nothing)

    def images(self, x: Tensor) -> Tensor:
        """Images ``[B, H, W]`` in all positions, ``[B * positions, H, W]``."""
        return torch.stack([_turned(x, p) for p in self.positions], dim=1).flatten(0, 1)

    def sum_images(self, x: Tensor) -> Tensor:
        """The transpose of `images`."""
        parts = x.unflatten(0, (-1, len(self.positions))).unbind(1)
        back = [_turned_back(part, p) for part, p in zip(parts, self.positions, strict=True)]
        return torch.stack(back).sum(0)

    def measurement(self, sums: Tensor) -> Tensor:
        """Where the sums ``[B * positions, chosen]`` belong, ``[B, rays]``."""
        sums = sums.unflatten(0, (-1, len(self.positions))).flatten(1)
        y = sums.new_empty(len(sums), self.rays + 1)
        y[:, self.seen.flatten()] = sums
        return y[:, :-1]

    def values(self, y: Tensor) -> Tensor:
        """The transpose of `measurement`."""
        padded = torch.nn.functional.pad(y, (0, 1))
        chosen = padded[:, self.seen.flatten()]
        return chosen.unflatten(1, tuple(self.seen.shape)).flatten(0, 1)


def _seen_views(geometry: CTGeometry, position: Position) -> tuple[NDArray, NDArray]:
    """The view that every view is in this position (-1: none), and whether in reverse order."""
    mirror_x, mirror_y, swap = position
    angles = np.asarray(geometry.angles_rad)
    if not any(position):  # itself, even where another view has the same angle
        return np.arange(len(angles)), np.zeros(len(angles), dtype=bool)
    x, y = np.cos(angles), np.sin(angles)
    if swap:
        x, y = y, x
    x, y = (-x if mirror_x else x), (-y if mirror_y else y)
    wanted = np.arctan2(y, x)
    same, opposite = _view_at(angles, wanted), _view_at(angles, wanted + np.pi)
    return np.where(same >= 0, same, opposite), same < 0


def _view_at(angles: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first view at each of some angles, or -1."""
    turn = 2 * np.pi
    around = np.mod(angles + SAME_ANGLE, turn)  # so that 0 does not become 2 pi
    order = np.argsort(around, kind="stable")
    near = np.searchsorted(around[order], np.mod(wanted + SAME_ANGLE, turn) - SAME_ANGLE)
    view = order[near % len(order)]
    apart = (wanted - angles[view]) / turn
    return np.where(np.abs(apart - np.round(apart)) * turn < SAME_ANGLE, view, -1)


def _turned(x: Tensor, position: Position) -> Tensor:
    """The image whose value at (x, y) is that of ``x`` at the position of (x, y)."""
    mirror_x, mirror_y, swap = position
    axes = [axis for axis, mirror in ((-1, mirror_x), (-2, mirror_y)) if mirror]
    x = x.flip(axes) if axes else x
    return x.flip((-1, -2)).mT if swap else x  # y points upwards: the other diagonal


def _turned_back(x: Tensor, position: Position) -> Tensor:
    mirror_x, mirror_y, swap = position
    axes = [axis for axis, mirror in ((-1, mirror_x), (-2, mirror_y)) if mirror]
    x = x.flip((-1, -2)).mT if swap else x
    return x.flip(axes) if axes else x
