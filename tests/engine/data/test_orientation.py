"""From stored volumes to the screen and back: every voxel stays where it is in the patient."""

import itertools

import numpy as np
import pytest
from volume_files import oblique

from engine.data.dataset import Placement
from engine.data.images.orientation import Screen, affine_of, flip_lps_ras, usable
from engine.spec.errors import RequestError


def signed_permutations():
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1, -1), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[order, range(3)] = signs
            yield matrix


@pytest.mark.parametrize("matrix", list(signed_permutations()))
def test_every_orientation_is_shown_as_radiologists_expect(matrix):
    affine = np.eye(4)
    affine[:3, :3] = matrix * [0.5, 0.75, 3]
    (first, *_) = Screen.for_affine(affine).placements(affine, (4, 5, 2))
    normal = int(np.argmax(np.abs(first.normal)))
    right = {0: (0, 1, 0), 1: (1, 0, 0), 2: (1, 0, 0)}[normal]  # sagittal: posterior on the right
    down = {0: (0, 0, -1), 1: (0, 0, -1), 2: (0, 1, 0)}[normal]  # head or anterior on top
    assert first.along_row == right
    assert first.along_column == down


@pytest.mark.parametrize("matrix", list(signed_permutations())[::5])
def test_a_shown_pixel_is_the_stored_voxel_of_its_place(matrix):
    turned = oblique()
    affine = turned.copy()
    affine[:3, :3] = turned[:3, :3] @ matrix
    volume = np.arange(60).reshape(4, 5, 3)
    screen = Screen.for_affine(affine)
    placements = screen.placements(affine, volume.shape)
    for k, placement in enumerate(placements):
        shown = screen.show(volume[:, :, k])
        for (row, column), value in np.ndenumerate(shown):
            where = (
                np.array(placement.position)
                + row * placement.spacing_mm[0] * np.array(placement.along_column)
                + column * placement.spacing_mm[1] * np.array(placement.along_row)
            )
            index = np.linalg.solve(affine, [*where, 1])[:3]
            np.testing.assert_allclose(index, np.round(index), atol=1e-9)
            assert volume[tuple(np.round(index).astype(int))] == value


def test_placements_and_affine_are_inverse_to_each_other():
    affine = oblique()
    placements = Screen().placements(affine, (4, 5, 6))
    again, notes = affine_of(placements)
    np.testing.assert_allclose(again, affine, atol=1e-12)
    assert notes == []


def test_ras_is_lps_turned_half_round_the_long_axis():
    ras = flip_lps_ras(np.eye(4))
    np.testing.assert_array_equal(ras @ [1, 2, 3, 1], [-1, -2, 3, 1])
    np.testing.assert_array_equal(flip_lps_ras(ras), np.eye(4))


def test_uneven_slices_are_said_and_turned_ones_refused():
    def at(z, along_row=(1.0, 0.0, 0.0)):
        return Placement((0, 0, z), along_row, (0, 1, 0), (1, 1), 1.0)

    _, notes = affine_of([at(0), at(1), at(3)])
    assert "not evenly spaced" in notes[0]
    assert "0.5 mm" in notes[0]
    with pytest.raises(RequestError, match="not parallel"):
        affine_of([at(0), at(1, (0.0, 0.0, 1.0))])
    with pytest.raises(RequestError, match="same place"):
        affine_of([at(0), at(0)])


@pytest.mark.parametrize(
    "matrix",
    [np.zeros((4, 4)), np.full((4, 4), np.nan), np.diag([1, 1, 0, 1]), np.diag([1e9, 1, 1, 1])],
)
def test_nonsense_is_not_usable(matrix):
    assert not usable(matrix)


def test_a_plane_with_skew_axes_has_no_placement():
    affine = np.eye(4)
    affine[0, 1] = 0.4
    assert Screen.for_affine(affine).placements(affine, (3, 3, 1)) is None
