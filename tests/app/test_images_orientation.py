"""The letters at the edges tell the truth about the patient, however the image is turned."""

import numpy as np
import pytest
from PySide6.QtTest import QTest

from app.images.caption import edge_letters
from app.images.display import Orientation
from app.images.pane import ImagePane
from engine.data.dataset import Placement


def placement(row, column):
    return Placement((0.0, 0.0, 0.0), tuple(row), tuple(column), (1.0, 1.0))


AXIAL = placement((1, 0, 0), (0, 1, 0))
CORONAL = placement((1, 0, 0), (0, 0, -1))
SAGITTAL = placement((0, 1, 0), (0, 0, -1))


@pytest.mark.parametrize(
    ("plane", "letters"),
    [(AXIAL, "RALP"), (CORONAL, "RHLF"), (SAGITTAL, "AHPF")],
    ids=["axial", "coronal", "sagittal"],
)
def test_planes_have_the_letters_of_the_textbook(plane, letters):
    assert "".join(edge_letters(plane, Orientation())) == letters  # left, top, right, bottom


def test_a_tilted_slice_names_the_nearer_side_first():
    angle = np.radians(30)
    tilted = placement((1, 0, 0), (0, np.cos(angle), -np.sin(angle)))
    found = edge_letters(tilted, Orientation())
    assert found == ("R", "AH", "L", "PF")
    steep = np.radians(60)
    found = edge_letters(placement((1, 0, 0), (0, np.cos(steep), -np.sin(steep))), Orientation())
    assert found == ("R", "HA", "L", "FP")


def test_an_oblique_slice_gets_all_its_letters_and_opposite_edges_are_opposite():
    row = np.array([2.0, 1.0, 0.7])
    row /= np.linalg.norm(row)
    column = np.cross([0.3, -0.2, 1.0], row)
    column /= np.linalg.norm(column)
    found = edge_letters(placement(row, column), Orientation())
    assert found.right == "LPH"
    other = str.maketrans("LRAPHF", "RLPAFH")
    assert found.left == found.right.translate(other)
    assert found.top == found.bottom.translate(other)


def test_a_tilt_of_a_few_degrees_keeps_one_letter():
    angle = np.radians(5)
    assert edge_letters(placement((1, 0, 0), (0, np.cos(angle), np.sin(angle))), Orientation()) == (
        "R",
        "A",
        "L",
        "P",
    )


def test_unknown_geometry_has_no_letters():
    assert "".join(edge_letters(None, Orientation())) == ""


@pytest.mark.parametrize(
    ("keys", "letters"),
    [
        ("r", "PRAL"),  # clockwise: what was at the left is now at the top
        ("l", "ALPR"),
        ("rr", "LPRA"),
        ("h", "LARP"),
        ("v", "RPLA"),
        ("rh", "ARPL"),
        ("hr", "PLAR"),
        ("rrrr", "RALP"),
        ("hh", "RALP"),
        ("hv", "LPRA"),
    ],
)
def test_letters_follow_turns_and_mirrors_made_by_key(qtbot, keys, letters):
    pane = ImagePane()
    qtbot.addWidget(pane)
    pane.set_image(np.zeros((8, 8), np.float32))
    pane.set_placement(AXIAL)
    for key in keys:
        QTest.keyClick(pane, key)
    assert "".join(pane.overlay.text.letters) == letters


def test_the_letters_agree_with_the_pixels_on_the_screen(qtbot):
    """The patient's right side is marked white: the letter R must stand at the white side."""
    pane = ImagePane()
    qtbot.addWidget(pane)
    pane.resize(300, 330)
    image = np.full((40, 40), -2000, np.float32)
    image[:, :8] = 2000  # first columns of an axial slice: the patient's right
    pane.set_image(image)
    pane.set_placement(AXIAL)
    pane.show()
    for key in "rhrvlr":
        QTest.keyClick(pane, key)
        pane.overlay.hide()
        shot = pane.snapshot()
        pane.overlay.show()
        w, h = shot.width(), shot.height()
        places = {"left": (20, h // 2), "top": (w // 2, 20)}
        places |= {"right": (w - 21, h // 2), "bottom": (w // 2, h - 21)}
        bright = [name for name, at in places.items() if shot.pixelColor(*at).lightness() > 200]
        assert len(bright) == 1
        assert getattr(pane.overlay.text.letters, bright[0]) == "R"


def test_turn_and_mirror_are_told_apart():
    turned = Orientation().rotated(True)
    assert (turned.degrees, turned.mirrored) == (90, False)
    assert turned.rotated(False) == Orientation()
    assert turned.flipped_horizontally().mirrored
    x, y = turned.to_screen(3, 5)
    assert turned.to_image(x, y) == (3, 5)
