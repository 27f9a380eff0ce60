"""Which voxel is where in the three cuts, from the placements alone."""

import numpy as np
import pytest

from app.images.caption import edge_letters
from app.images.display import Orientation
from app.tools.volume.space import cuts_of
from engine.data.dataset import Placement

SHAPE = (3, 4, 5)
VOLUME = np.arange(60, dtype=np.float32).reshape(SHAPE)
STACKS = {  # along a row, along a column, from slice to slice
    "feet first": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "head first": ((1, 0, 0), (0, 1, 0), (0, 0, -1)),
    "prone": ((-1, 0, 0), (0, -1, 0), (0, 0, 1)),
    "coronal": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "sagittal": ((0, 1, 0), (0, 0, -1), (-1, 0, 0)),
}
LETTERS = {"Axial": "RALP", "Coronal": "RHLF", "Sagittal": "AHPF"}  # left, top, right, bottom


def placed(row, column, step, apart=5.0):
    return [
        Placement(tuple(apart * n * v for v in step), row, column, (2.0, 1.5)) for n in range(3)
    ]


@pytest.mark.parametrize("stack", STACKS)
def test_cuts_across_the_slices_are_turned_the_usual_way(stack):
    cuts = cuts_of(placed(*STACKS[stack]), (2.0, 1.5))
    assert {cut.name for cut in cuts} == set(LETTERS)
    for cut in cuts[1:]:
        assert "".join(edge_letters(cut.placement, Orientation())) == LETTERS[cut.name]
    assert not cuts[0].flip_down
    assert not cuts[0].flip_right, "slices are shown as in the main window"


@pytest.mark.parametrize("stack", STACKS)
def test_every_pixel_of_every_cut_is_the_voxel_it_says(stack):
    voxel = (1, 2, 3)
    for cut in cuts_of(placed(*STACKS[stack]), (2.0, 1.5)):
        picture = cut.picture(VOLUME, voxel)
        assert picture.shape == (SHAPE[cut.down], SHAPE[cut.right])
        for row, column in np.ndindex(picture.shape):
            found = cut.voxel((column, row), voxel, SHAPE)
            assert picture[row, column] == VOLUME[found]
            assert cut.pixel(found, SHAPE) == (column, row)
            assert found[cut.axis] == voxel[cut.axis]


def test_pixels_are_as_large_as_the_slices_are_apart():
    axial, coronal, sagittal = cuts_of(placed(*STACKS["feet first"], apart=5.0), (2.0, 1.5))
    assert axial.pixel_mm == (2.0, 1.5)
    assert coronal.pixel_mm == (5.0, 1.5)
    assert sagittal.pixel_mm == (5.0, 2.0)
    unplaced = cuts_of(None, (2.0, 1.5))
    assert unplaced[1].placement is None, "no letters where nobody knows them"
