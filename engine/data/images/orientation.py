"""From a volume's affine to placed slices on the screen, and back.

World coordinates are DICOM's: mm towards the patient's left, posterior and head (LPS). NIfTI
counts towards right, anterior and head (RAS); ``flip_lps_ras`` goes either way.

A stored volume is indexed (i, j, k), i fastest, and its slices are the planes of equal k. On
the screen a plane is turned by quarter turns and mirrored, never resampled, until it looks as
radiologists are used to: axial with the patient's right on the left and anterior on top,
coronal with the head on top, sagittal with anterior on the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.dataset import Placement, vector_of
from engine.spec.errors import RequestError

RIGHT_ANGLE = 1e-3  # cosine up to which two axes still count as perpendicular
EVEN_MM = 1e-3  # slices this near to even spacing are evenly spaced
ASSUMED_THICKNESS_MM = 1.0

# axis of the normal (L, P, S) -> what should point right and what down, in LPS
_SCREEN = {0: ((0, 1, 0), (0, 0, -1)), 1: ((1, 0, 0), (0, 0, -1)), 2: ((1, 0, 0), (0, 1, 0))}


def flip_lps_ras(affine: np.ndarray) -> np.ndarray:
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine


def usable(affine: np.ndarray) -> bool:
    """Whether an affine describes a volume at all: finite, and no axis is lost."""
    steps = affine[:3, :3]
    if not np.isfinite(affine).all() or not (np.abs(affine) < 1e7).all():
        return False
    lengths = np.linalg.norm(steps, axis=0)
    return bool((lengths > 1e-6).all() and abs(np.linalg.det(steps / lengths)) > 1e-3)


@dataclass(frozen=True)
class Screen:
    """How a stored plane ``[i, j]`` becomes rows and columns on the screen."""

    i_is_column: bool = True
    flip_rows: bool = False
    flip_columns: bool = False

    @classmethod
    def for_affine(cls, affine: np.ndarray) -> Screen:
        """Of the eight ways to lay a plane down, the one nearest to custom."""
        i, j = (affine[:3, axis] / np.linalg.norm(affine[:3, axis]) for axis in (0, 1))
        right, down = _SCREEN[int(np.argmax(np.abs(np.cross(i, j))))]
        ways = []
        for i_is_column in (True, False):
            columns, rows = (i, j) if i_is_column else (j, i)
            along_row, along_column = float(columns @ right), float(rows @ down)
            closeness = abs(along_row) + abs(along_column)
            ways.append((closeness, cls(i_is_column, along_column < 0, along_row < 0)))
        # a tie (45 degrees) goes to the plane as it is stored
        return ways[0][1] if ways[0][0] >= ways[1][0] - 1e-9 else ways[1][1]

    def show(self, plane: np.ndarray) -> np.ndarray:
        """The stored ``[i, j]`` as ``[row, column]``."""
        shown = plane.T if self.i_is_column else plane
        shown = shown[::-1] if self.flip_rows else shown
        return np.ascontiguousarray(shown[:, ::-1] if self.flip_columns else shown)

    def spacing(self, affine: np.ndarray) -> tuple[float, float]:
        """Between rows, between columns."""
        i, j = (float(np.linalg.norm(affine[:3, axis])) for axis in (0, 1))
        return (j, i) if self.i_is_column else (i, j)

    def size(self, ni: int, nj: int) -> tuple[int, int]:
        return (nj, ni) if self.i_is_column else (ni, nj)

    def placements(
        self, affine: np.ndarray, shape: tuple[int, int, int]
    ) -> tuple[Placement, ...] | None:
        """Of every slice; None when the plane's axes are not perpendicular."""
        steps = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
        if abs(steps[:, 0] @ steps[:, 1]) > RIGHT_ANGLE:
            return None
        column_axis, row_axis = (0, 1) if self.i_is_column else (1, 0)
        first = np.zeros(3)
        if self.flip_columns:
            first[column_axis] = shape[column_axis] - 1
        if self.flip_rows:
            first[row_axis] = shape[row_axis] - 1
        along_row = steps[:, column_axis] * (-1 if self.flip_columns else 1)
        along_column = steps[:, row_axis] * (-1 if self.flip_rows else 1)
        thickness = abs(float(np.cross(along_row, along_column) @ affine[:3, 2]))
        return tuple(
            Placement(
                vector_of(affine[:3, :3] @ (first + np.array([0, 0, k])) + affine[:3, 3]),
                vector_of(along_row),
                vector_of(along_column),
                self.spacing(affine),
                thickness,
            )
            for k in range(shape[2])
        )


def affine_of(placements: Sequence[Placement]) -> tuple[np.ndarray, list[str]]:
    """Voxel (column, row, slice) to LPS mm, and what a single affine could not say of them."""
    first, notes = placements[0], []
    for other in placements[1:]:
        turned = np.abs(
            np.subtract(
                [*first.along_row, *first.along_column], [*other.along_row, *other.along_column]
            )
        ).max()
        if turned > RIGHT_ANGLE or not np.allclose(first.spacing_mm, other.spacing_mm, rtol=1e-4):
            raise RequestError(
                "The slices are not parallel or differ in pixel size: they are no volume; "
                "write fewer slices, or DICOM."
            )
    positions = np.array([placement.position for placement in placements])
    if len(placements) > 1:
        step = (positions[-1] - positions[0]) / (len(placements) - 1)
        even = positions[0] + np.arange(len(placements))[:, None] * step
        off = float(np.abs(positions - even).max())
        if off > EVEN_MM:
            notes.append(
                f"The slices are not evenly spaced: the written volume has their mean spacing, "
                f"which is off by up to {off:.3g} mm."
            )
    else:
        if first.thickness_mm is None:
            notes.append("The thickness of the slice is not known: 1 mm was written.")
        step = np.array(first.normal) * (first.thickness_mm or ASSUMED_THICKNESS_MM)
    affine = np.eye(4)
    affine[:3, 0] = np.array(first.along_row) * first.spacing_mm[1]
    affine[:3, 1] = np.array(first.along_column) * first.spacing_mm[0]
    affine[:3, 2], affine[:3, 3] = step, positions[0]
    if not usable(affine):
        raise RequestError("The slices lie at the same place: they are no volume.")
    return affine, notes
