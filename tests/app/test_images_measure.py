"""Lengths, angles, regions and arrows: drawn with the mouse, compared with arithmetic."""

import csv
import io
import math

import numpy as np
import pytest
from pane_events import LEFT, NONE, picture, stroke
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.images.display import Tool
from app.images.drawn import DrawnItem
from app.images.measure import Kind, Measurement
from app.images.measurement_list import CSV_HEADS, MeasurementList
from engine.metrics.roi import masked_statistics, polygon_mask

UNEVEN = (1.5, 0.5)  # mm between rows, between columns


@pytest.fixture
def uneven(grid):
    """Columns lie three times as near as rows do."""
    for seed, pane in enumerate(grid.image_panes()):
        pane.set_image(picture(seed, 40, 120), UNEVEN)
    QApplication.processEvents()
    return grid


@pytest.fixture
def listing(uneven, qtbot):
    made = MeasurementList(uneven.inspector)
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    return made


def at_pixel(pane, row, column):
    """Where the middle of a pixel of the image is on the screen."""
    image, view = pane.image, pane.view
    rows_mm, columns_mm = view.pixel_mm
    x = (column + 0.5 - image.shape[1] / 2) * columns_mm
    y = (row + 0.5 - image.shape[0] / 2) * rows_mm
    point = view.mm_to_screen().map(QPointF(x, y)).toPoint()
    return point.x(), point.y()


def draw(grid, tool, *points, key="fbp"):
    """Press at the first, go by the others, release at the last: rows and columns of pixels."""
    grid.link.set_tool(tool)
    pane = grid.pane(key)
    target = pane.view.viewport()
    places = [QPoint(*at_pixel(pane, *point)) for point in points]
    QTest.mousePress(target, LEFT, NONE, places[0])
    for place in places[1:]:
        QTest.mouseMove(target, place)
    QTest.mouseRelease(target, LEFT, NONE, places[-1])
    return places


def click(pane, row, column):
    place = QPoint(*at_pixel(pane, row, column))
    QTest.mouseMove(pane.view.viewport(), place)
    QTest.mouseClick(pane.view.viewport(), LEFT, NONE, place)


def newest(grid):
    return grid.link.measurements.all[-1]


def words(grid, key, one):
    return grid.pane(key).view.drawn.items[one.number].label.text()


def test_a_length_is_in_millimetres_of_the_true_spacing(uneven):
    scale = uneven.pane("fbp").view.pixels_per_mm()
    for (r0, c0), (r1, c1) in (((5, 10), (35, 10)), ((20, 14), (20, 99)), ((5, 20), (35, 110))):
        draw(uneven, Tool.RULER, (r0, c0), (r1, c1))
        expected = math.hypot((r1 - r0) * 1.5, (c1 - c0) * 0.5)
        one = newest(uneven)
        assert one.length_mm == pytest.approx(expected, abs=1.5 / scale)  # the mouse has pixels
        assert words(uneven, "diffpir", one) == f"{one.name}\n{one.length_mm:.1f} mm"
        uneven.link.measurements.select(None)
    assert [one.name for one in uneven.link.measurements.all] == [f"Length {n}" for n in (1, 2, 3)]


def test_without_a_size_of_pixels_a_length_is_in_pixels(grid):
    for seed, pane in enumerate(grid.image_panes()):
        pane.set_image(picture(seed), (1.0, 1.0))
    grid.link.set_source(1, spacing_known=False)
    draw(grid, Tool.RULER, (10, 10), (10, 50))
    scale = grid.pane("fbp").view.pixels_per_mm()
    assert newest(grid).length_mm == pytest.approx(40, abs=1.5 / scale)
    assert words(grid, "fbp", newest(grid)).endswith(" px")


@pytest.mark.parametrize("turned", [False, True])
def test_an_angle_is_that_of_the_patient_not_of_the_pixels(uneven, turned):
    if turned:
        uneven.link.rotate(True)
        uneven.link.flip_horizontally()
    pane = uneven.pane("fbp")
    for end, expected in (
        ((32, 30), 90.0),  # straight down from the vertex
        ((32, 66), 45.0),  # 12 rows of 1.5 mm down, 36 columns of 0.5 mm to the right
        ((32, 12), 90 + math.degrees(math.atan(9 / 18))),
    ):
        draw(uneven, Tool.ANGLE, (20, 100), (20, 30))
        assert not newest(uneven).whole
        click(pane, *end)
        one = newest(uneven)
        assert one.angle_degrees == pytest.approx(expected, abs=2.0)
        (x0, y0), (x, y), (x1, y1) = one.points
        first, second = math.atan2(y0 - y, x0 - x), math.atan2(y1 - y, x1 - x)
        turn = abs(math.degrees(first - second)) % 360
        assert one.angle_degrees == pytest.approx(min(turn, 360 - turn))
        assert words(uneven, "reference", one) == f"{one.name}\n{one.angle_degrees:.1f}°"
        uneven.link.measurements.clear()


def test_half_an_angle_is_none(uneven):
    draw(uneven, Tool.ANGLE, (20, 100), (20, 30))
    uneven.link.set_tool(Tool.WINDOW)
    assert not uneven.link.measurements.all
    assert not uneven.link.measurements.stack.canUndo()


def test_a_freehand_region_is_measured_where_its_outline_runs(uneven):
    corners = [(5, 20), (5, 100), (20, 100), (20, 60), (35, 60), (35, 20), (6, 20)]  # an L
    draw(uneven, Tool.FREEHAND, *corners)
    one = newest(uneven)
    inside = np.zeros((40, 120), bool)
    inside[5:20, 20:100] = inside[20:35, 20:60] = True
    mask = polygon_mask((40, 120), UNEVEN, one.points)
    assert np.count_nonzero(mask != inside) < 140  # one pixel along the outline at most
    assert mask[10, 90]
    assert mask[30, 30]
    assert not mask[30, 90]
    for pane in uneven.image_panes():
        found = uneven.inspector.values[one.number][pane].statistics
        assert found == masked_statistics(pane.image, UNEVEN, mask)
        assert found.area_mm2 == pytest.approx(mask.sum() * 0.75)


def test_several_regions_are_measured_in_all_panes_at_once(listing, uneven):
    draw(uneven, Tool.ELLIPSE, (5, 10), (15, 40))
    draw(uneven, Tool.RECTANGLE, (25, 60), (35, 110), key="diffpir")
    draw(uneven, Tool.RULER, (20, 10), (20, 50))
    drawn = uneven.link.measurements.all
    assert [one.name for one in drawn] == ["Region 1", "Region 2", "Length 1"]
    assert [listing.table.item(row, 0).text() for row in range(3)] == [one.name for one in drawn]
    rows = list(csv.reader(io.StringIO(listing.csv_text())))
    assert tuple(rows[0]) == CSV_HEADS
    assert len(rows) == 1 + 4 + 4 + 1
    for row in rows[1:9]:
        value = dict(zip(CSV_HEADS, row, strict=True))
        (one,) = (one for one in drawn if one.name == value["name"])
        (pane,) = (pane for pane in uneven.image_panes() if pane.name == value["image"])
        found = uneven.inspector.values[one.number][pane].statistics
        assert float(value["mean"]) == pytest.approx(found.mean, rel=1e-5)
        assert float(value["SD"]) == pytest.approx(found.sd, rel=1e-5)
        assert int(value["pixels"]) == found.pixels
        assert float(value["area"]) == pytest.approx(found.pixels * 0.75)
        assert (value["unit"], value["area unit"]) == ("HU", "mm²")
    last = dict(zip(CSV_HEADS, rows[9], strict=True))
    assert (last["name"], last["length unit"]) == ("Length 1", "mm")
    assert float(last["length"]) == pytest.approx(drawn[2].length_mm, rel=1e-5)
    listing.copy.click()
    assert QGuiApplication.clipboard().text() == listing.csv_text()


def test_names_are_changed_and_steps_taken_back(listing, uneven):
    drawn = uneven.link.measurements
    draw(uneven, Tool.RULER, (20, 10), (20, 50))
    draw(uneven, Tool.ARROW, (5, 10), (10, 50))
    listing.table.item(0, 0).setText("=cmd()\u202e")
    assert drawn.all[0].name == "=cmd()\\u202e"
    assert "'=cmd()" in listing.csv_text()  # no formula for a spreadsheet
    listing.table.item(0, 0).setText("   ")
    assert listing.table.item(0, 0).text() == drawn.all[0].name == "=cmd()\\u202e"
    listing.table.selectRow(1)
    assert drawn.selected == drawn.all[1].number
    listing.remove.click()
    assert [one.kind for one in drawn.all] == [Kind.RULER]
    drawn.stack.undo()
    assert [one.kind for one in drawn.all] == [Kind.RULER, Kind.ARROW]
    drawn.stack.undo()
    assert drawn.all[0].name == "Length 1"
    drawn.stack.undo()
    drawn.stack.undo()
    assert not drawn.all
    assert not listing.body.isVisible()
    drawn.stack.redo()
    assert [one.name for one in drawn.all] == ["Length 1"]
    drawn.forget()  # other data
    drawn.stack.undo()
    drawn.stack.redo()
    assert not drawn.all


def test_a_measurement_belongs_to_its_slice_and_the_list_leads_there(listing, uneven):
    link = uneven.link
    link.set_slice_count(9)
    link.set_slice(4)
    draw(uneven, Tool.RECTANGLE, (5, 10), (15, 40))
    one = newest(uneven)
    before = uneven.inspector.values[one.number]
    link.set_slice(5)
    assert not uneven.pane("fbp").view.drawn.items
    assert link.measurements.region is None
    draw(uneven, Tool.RULER, (20, 10), (20, 50))
    assert uneven.inspector.values[one.number] == before
    listing._on_double_click(listing.table.item(0, 2))
    assert link.state.slice == 4
    assert list(uneven.pane("fbp").view.drawn.items) == [one.number]


def test_a_click_on_a_measurement_selects_it_and_changes_nothing(uneven):
    draw(uneven, Tool.RULER, (20, 10), (20, 50))
    one = newest(uneven)
    uneven.link.measurements.select(None)
    pane = uneven.pane("dc-pnpdp")
    x, y = at_pixel(pane, 20, 50)
    QTest.mouseClick(pane.view.viewport(), LEFT, NONE, QPoint(x + 2, y + 2))
    assert uneven.link.measurements.selected == one.number
    assert newest(uneven) == one
    stroke(pane, (x + 2, y + 2), (x + 40, y))  # its end is drawn away
    assert newest(uneven).number == one.number
    assert newest(uneven).start == one.start
    assert newest(uneven).length_mm > one.length_mm
    QTest.keyClick(pane, Qt.Key.Key_Delete)
    assert not uneven.link.measurements.all


def test_names_stay_upright_and_of_one_size(uneven):
    draw(uneven, Tool.ARROW, (5, 10), (10, 50))
    item = uneven.pane("fbp").view.drawn.items[newest(uneven).number]
    assert isinstance(item, DrawnItem)
    view = uneven.pane("fbp").view

    def height():
        whole = item.label.deviceTransform(view.viewportTransform())
        return whole.m11(), whole.m12(), whole.m22()

    before = height()
    uneven.link.rotate(True)
    uneven.link.flip_vertically()
    uneven.link.set_zoom(3)
    assert height() == pytest.approx(before)


def test_the_angle_of_opposite_legs_is_straight():
    def angle(*points):
        return Measurement(Kind.ANGLE, points).angle_degrees

    assert angle((-1, 0), (0, 0), (2, 0)) == 180
    assert angle((1, 0), (0, 0), (2, 0)) == 0
    assert angle((1, 0), (0, 0), (0, -3)) == pytest.approx(90)


# -- by keyboard ----------------------------------------------------------------------------

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


@pytest.mark.parametrize("tool", [tool for tool in Tool if tool.value in {k.value for k in Kind}])
def test_every_measurement_can_be_made_and_moved_by_keyboard(uneven, tool):
    pane, drawn = uneven.pane("fbp"), uneven.link.measurements
    pane.setFocus()
    QTest.keyClick(pane, Qt.Key.Key_M)
    assert not drawn.all, "the window tool measures nothing"
    uneven.link.set_tool(tool)
    QTest.keyClick(pane, Qt.Key.Key_M)
    (one,) = drawn.all
    assert one.kind.value == tool.value
    assert one.whole
    QTest.keyClick(pane, Qt.Key.Key_Right, SHIFT)
    QTest.keyClick(pane, Qt.Key.Key_Down, SHIFT)
    moved = drawn.all[0]
    steps = np.array(moved.points) - np.array(one.points)
    np.testing.assert_allclose(steps, np.broadcast_to([0.5, 1.5], steps.shape))
    QTest.keyClick(pane, Qt.Key.Key_Right, CTRL)
    stretched = drawn.all[0]
    assert stretched.points != moved.points
    if one.length_mm is not None:
        assert stretched.length_mm == pytest.approx(one.length_mm + 0.5)
    assert uneven.link.state.slice == 0, "arrows with Shift are no slices"
    drawn.stack.undo()
    assert drawn.all == (moved,)


def test_arrow_keys_follow_the_turned_picture(uneven):
    pane, link = uneven.pane("fbp"), uneven.link
    link.set_tool(Tool.RULER)
    link.rotate(True)
    QTest.keyClick(pane, Qt.Key.Key_M)
    before = pane.view.mm_to_screen().map(QPointF(*newest(uneven).start))
    QTest.keyClick(pane, Qt.Key.Key_Down, SHIFT)
    after = pane.view.mm_to_screen().map(QPointF(*newest(uneven).start))
    assert after.x() == pytest.approx(before.x())
    assert after.y() > before.y()
