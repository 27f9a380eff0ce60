"""Panes side by side: they move together and share the room."""

import numpy as np
import pytest
from pane_events import LEFT, NONE, PIXEL, SHIFT, move, picture, stroke
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.images.grid import PaneGrid
from app.images.pages import best_columns


def same_place(grid):
    """What the middle and a point off it show, in every pane."""
    places = []
    for pane in grid.image_panes():
        width, height = pane.view.pane_size
        scale = min(width, height)
        places.append(
            pane.view.to_mm(QPointF(width / 2, height / 2))
            + pane.view.to_mm(QPointF(width / 2 + 0.2 * scale, height / 2 - 0.1 * scale))
        )
    return places


# -- linked ------------------------------------------------------------------------------------


def test_zoom_and_pan_in_one_pane_move_all(grid):
    stroke(grid.pane("fbp"), (100, 100), (100, 160), Qt.MouseButton.RightButton)
    stroke(grid.pane("diffpir"), (100, 100), (130, 80), Qt.MouseButton.MiddleButton)
    places = same_place(grid)
    for place in places[1:]:
        assert place == pytest.approx(places[0])
    assert places[0][:2] != pytest.approx((0, 0))


def test_panes_stay_on_the_same_place_after_resizing_back_and_forth(grid):
    grid.link.set_zoom(2.0)
    grid.link.set_centre((5.0, -7.0))
    before = same_place(grid)[0]
    for size in ((1200, 500), (500, 900), (640, 640), (900, 640)):
        grid.resize(*size)
        QApplication.processEvents()
        for place in same_place(grid):
            assert place[:2] == pytest.approx((5.0, -7.0))
    assert same_place(grid)[0] == pytest.approx(before)
    assert grid.link.state.zoom == 2.0


def test_images_of_other_pixel_size_show_the_same_anatomy(grid):
    grid.pane("fbp").set_image(picture(9, 128, 128), (0.4, 0.4))
    point = QPointF(120, 90)
    assert grid.pane("fbp").view.to_mm(point) == pytest.approx(
        grid.pane("reference").view.to_mm(point)
    )


def test_one_window_for_all(grid):
    stroke(grid.pane("reference"), (100, 100), (160, 70))
    levels = [pane.view.image_item.levels for pane in grid.image_panes()]
    for other in levels[1:]:
        np.testing.assert_array_equal(other, levels[0])


def test_the_crosshair_appears_at_the_same_place_in_every_pane(grid):
    move(grid.pane("fbp"), 90, 110, SHIFT)
    expected = grid.pane("fbp").view.to_mm(QPointF(90, 110))
    for pane in grid.image_panes():
        horizontal, vertical = pane.view._crosshair
        assert horizontal.isVisible()
        assert (vertical.line().x1(), horizontal.line().y1()) == pytest.approx(expected)


def test_every_pane_reads_its_own_value_under_the_one_cursor(grid):
    move(grid.pane("diffpir"), 130, 140)
    column, row = grid.pane("diffpir").view.pixel_at(grid.link.cursor)
    for pane in grid.image_panes():
        assert pane.readout() == f"HU {pane.image[row, column]:.0f} @ ({column}, {row})"


def test_a_new_pane_joins_the_view_of_the_others(grid):
    grid.link.set_zoom(3)
    grid.link.rotate(True)
    pane = grid.add("tv", "TV")
    pane.set_image(picture(7), PIXEL)
    QApplication.processEvents()
    places = same_place(grid)
    assert places[-1] == pytest.approx(places[0])


def test_removing_the_widest_image_fits_the_others_again(grid):
    scale = grid.pane("reference").view.pixels_per_mm()
    grid.pane("fbp").set_image(picture(1, 64, 128), PIXEL)
    assert grid.link.field == (128 * 0.8, 64 * 0.8)
    grid.remove("fbp")
    assert grid.link.field == (64 * 0.8, 64 * 0.8)
    grid.add("fbp", "FBP").set_image(picture(1), PIXEL)
    QApplication.processEvents()
    assert grid.pane("reference").view.pixels_per_mm() == pytest.approx(scale)


# -- layout ------------------------------------------------------------------------------------


def test_panes_are_even(grid):
    sizes = {(pane.width(), pane.height()) for pane in grid.image_panes()}
    widths, heights = zip(*sizes, strict=True)
    assert max(widths) - min(widths) <= 1
    assert max(heights) - min(heights) <= 1


@pytest.mark.parametrize(
    ("count", "size", "columns"),
    [
        (4, (900, 640), 2),
        (4, (1600, 400), 4),
        (4, (300, 1200), 1),
        (1, (500, 500), 1),
        (0, (9, 9), 1),
    ],
)
def test_the_number_of_columns_follows_the_room(count, size, columns):
    assert best_columns(count, *size) == columns


def test_double_click_shows_one_pane_alone_and_back(grid, qtbot):
    pane = grid.pane("fbp")
    grid.link.set_centre((4.0, 4.0))
    with qtbot.waitSignal(grid.maximised_changed, check_params_cb=lambda key: key == "fbp"):
        QTest.mouseDClick(pane.view.viewport(), LEFT, NONE, QPoint(50, 50))
    QApplication.processEvents()
    assert [p.isVisible() for p in grid.image_panes()] == [False, True, False, False]
    assert pane.width() > 0.95 * grid.width()
    QTest.mouseDClick(pane.view.viewport(), LEFT, NONE, QPoint(50, 50))
    QApplication.processEvents()
    assert all(p.isVisible() for p in grid.image_panes())
    assert grid.link.state.centre == (4.0, 4.0)
    places = same_place(grid)
    assert all(place == pytest.approx(places[0]) for place in places)


def test_without_panes_the_grid_says_what_to_do(qtbot):
    grid = PaneGrid()
    qtbot.addWidget(grid)
    grid.resize(400, 300)
    grid.show()
    assert grid._empty.isVisible()
    assert "demo" in grid._empty.words.text()
    grid.add("a", "A")
    assert not grid._empty.isVisible()
    grid.clear()
    assert grid._empty.isVisible()


def test_masking_reaches_every_pane_now_and_later(grid):
    grid.set_patient_masked(False)
    for pane in (*grid.image_panes(), grid.add("new", "New")):
        pane.set_image(picture(0), PIXEL)
        pane.set_patient("Doe^Jane")
        assert pane.overlay.text.top_left == ("Doe^Jane",)
    grid.set_patient_masked(True)
    assert {pane.overlay.text.top_left for pane in grid.image_panes()} == {("***",)}
