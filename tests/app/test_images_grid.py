"""Panes side by side: they move together, compare, and measure the same place."""

import gc
import weakref

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.images.colours import DIVERGING
from app.images.compare import FLICKER_MS, BlendPane, DifferencePane
from app.images.display import Tool
from app.images.grid import CompareMode, PaneGrid, best_columns
from app.images.inspector import REFRESH_MS
from app.images.profile import ProfilePlot
from app.theme import run_style
from engine.metrics.roi import line_profile, region_mask, roi_statistics

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
PIXEL = (0.8, 0.8)


def picture(seed, rows=64, columns=64):
    return np.random.default_rng(seed).normal(40, 100, (rows, columns)).astype(np.float32)


@pytest.fixture
def grid(qtbot):
    grid = PaneGrid()
    qtbot.addWidget(grid)
    grid.resize(900, 640)
    for seed, key in enumerate(("reference", "fbp", "diffpir", "dc-pnpdp")):
        grid.add(key, key.upper(), run_style(key)).set_image(picture(seed), PIXEL)
    grid.show()
    QApplication.processEvents()
    return grid


def move(pane, x, y, modifiers=NONE, buttons=Qt.MouseButton.NoButton):
    target, at = pane.view.viewport(), QPointF(x, y)
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        at,
        target.mapToGlobal(at),
        Qt.MouseButton.NoButton,
        buttons,
        modifiers,
    )
    QApplication.sendEvent(target, event)


def stroke(pane, start, end, button=LEFT):
    target = pane.view.viewport()
    QTest.mousePress(target, button, NONE, QPoint(*start))
    QTest.mouseMove(target, QPoint(*end))
    QTest.mouseRelease(target, button, NONE, QPoint(*end))


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
    assert "demo" in grid._empty.text()
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


# -- compare -----------------------------------------------------------------------------------


def test_d_shows_the_difference_on_a_scale_of_its_own(grid):
    window = grid.link.window
    QTest.keyClick(grid.pane("fbp"), "d")
    pane = grid.compare_pane
    assert isinstance(pane, DifferencePane)
    np.testing.assert_array_equal(
        pane.image, grid.pane("dc-pnpdp").image - grid.pane("reference").image
    )
    low, high = pane.window_model.window.levels
    assert (low, high) == pytest.approx((-200, 200))
    assert pane.overlay.text.bar is not None
    assert pane.caption.name == "DC-PNPDP − REFERENCE"
    stroke(pane, (100, 100), (150, 60))  # vertical has no effect on a scale about zero
    low, high = pane.window_model.window.levels
    assert low == pytest.approx(-high)
    assert high == pytest.approx(200 * 1.25)
    assert grid.link.window == window
    QTest.keyClick(pane, "1")
    assert pane.window_model.window.levels[1] == pytest.approx(high)
    QTest.keyClick(pane, "d")
    assert grid.compare_pane is None
    assert grid.mode is CompareMode.NONE


def test_no_difference_is_black_and_signs_have_their_colours():
    assert DIVERGING.shape == (255, 3)
    np.testing.assert_array_equal(DIVERGING[127], 0)
    assert DIVERGING[0, 2] > DIVERGING[0, 0]  # negative: blue
    assert DIVERGING[-1, 0] > DIVERGING[-1, 2]  # positive: orange
    np.testing.assert_allclose(
        DIVERGING.astype(int).sum(1), DIVERGING[::-1].astype(int).sum(1), atol=90
    )


def test_equal_images_have_a_black_difference_on_the_screen(grid):
    grid.pane("dc-pnpdp").set_image(grid.pane("reference").image, PIXEL)
    grid.set_compare(CompareMode.DIFFERENCE)
    QApplication.processEvents()
    pane = grid.compare_pane
    pane.overlay.hide()
    shot = pane.snapshot()
    assert shot.pixelColor(shot.width() // 2, shot.height() // 2).lightness() == 0


def test_the_difference_follows_the_run(grid):
    grid.set_compare_sources("diffpir", "fbp")
    grid.set_compare(CompareMode.DIFFERENCE)
    new = picture(77)
    grid.pane("diffpir").set_image(new, PIXEL)
    np.testing.assert_array_equal(grid.compare_pane.image, new - grid.pane("fbp").image)


def test_images_of_other_size_have_no_difference_but_a_reason(grid):
    grid.pane("dc-pnpdp").set_image(picture(1, 32, 32), (1.6, 1.6))
    grid.set_compare(CompareMode.DIFFERENCE)
    assert grid.compare_pane.image is None
    assert "differ in size" in grid.compare_pane.overlay.text.middle


def test_f_flickers_between_a_and_b(grid):
    grid.link.set_cursor((0.1, 0.1))
    a, b = grid.pane("dc-pnpdp"), grid.pane("reference")
    a.set_image(np.full((64, 64), 2000, np.float32), PIXEL)
    b.set_image(np.full((64, 64), -2000, np.float32), PIXEL)
    QTest.keyClick(b, "f")
    QApplication.processEvents()
    pane = grid.compare_pane
    assert isinstance(pane, BlendPane)
    for shown, brightness in ((a, 255), (b, 0), (a, 255)):
        assert pane.readout() == shown.readout()
        assert pane.run_style == shown.run_style
        assert shown.name in pane.caption.name
        pane.overlay.hide()
        shot = pane.snapshot()
        pane.overlay.show()
        for x in (0.3, 0.7):
            at = QPoint(int(x * shot.width()), shot.height() // 2)
            assert shot.pixelColor(at).lightness() == brightness
        QTest.keyClick(pane, "f")


def test_shift_f_flickers_by_itself_twice_a_second_and_stops_when_closed(grid, qtbot):
    QTest.keyClick(grid.pane("fbp"), "f", SHIFT)
    pane = grid.compare_pane
    assert pane.timer.isActive()
    assert pane.timer.interval() == FLICKER_MS == 500
    pane.timer.setInterval(5)
    with qtbot.waitSignals([pane.shown_changed, pane.shown_changed], timeout=1000):
        pass
    QTest.keyClick(pane, Qt.Key.Key_Escape)
    assert not pane.timer.isActive()
    assert grid.compare_pane is None


def test_swipe_shows_a_left_and_b_right_of_a_divider_that_can_be_dragged(grid):
    a, b = grid.pane("dc-pnpdp"), grid.pane("reference")
    a.set_image(np.full((64, 64), 2000, np.float32), PIXEL)
    b.set_image(np.full((64, 64), -2000, np.float32), PIXEL)
    QTest.keyClick(a, "s")
    QApplication.processEvents()
    pane = grid.compare_pane
    width, height = (int(v) for v in pane.view.pane_size)

    def brightness(part):
        pane.overlay.hide()
        color = pane.snapshot().pixelColor(int(part * width), height // 2)
        pane.overlay.show()
        return color.lightness()

    assert (brightness(0.4), brightness(0.6)) == (255, 0)
    window = grid.link.window
    stroke(pane, (width // 2 + 2, 50), (int(0.7 * width), 90))
    assert pane.view.divider == pytest.approx(0.7, abs=0.01)
    assert grid.link.window == window
    assert (brightness(0.65), brightness(0.75)) == (255, 0)
    for part, value in ((0.6, 2000), (0.74, -2000)):
        move(pane, part * width, height / 2)
        assert pane.readout().startswith(f"HU {value} ")
    QTest.keyClick(pane, Qt.Key.Key_Left)
    assert pane.view.divider == pytest.approx(0.65, abs=0.01)
    stroke(pane, (int(0.2 * width), 50), (int(0.2 * width) + 30, 50))
    assert grid.link.window != window  # away from the divider the mouse does what it always does


def test_the_divider_stays_in_the_pane_and_crosshair_and_region_above_both(grid):
    grid.set_compare(CompareMode.SWIPE)
    pane = grid.compare_pane
    pane.set_divider(7)
    assert pane.view.divider == 1
    pane.set_divider(-7)
    assert pane.view.divider == 0
    assert pane.view.canvas.zValue() > pane.view._clip.zValue()


def test_modes_change_from_one_to_the_other(grid):
    for mode in (
        CompareMode.FLICKER,
        CompareMode.SWIPE,
        CompareMode.DIFFERENCE,
        CompareMode.FLICKER,
    ):
        grid.set_compare(mode)
        assert grid.mode is mode
        QApplication.processEvents()
    grid.remove("dc-pnpdp")  # a source goes: the comparison goes with it
    assert grid.compare_pane is None


def test_one_image_cannot_be_compared_and_says_so(qtbot):
    grid = PaneGrid()
    qtbot.addWidget(grid)
    grid.add("a", "A").set_image(picture(0))
    with qtbot.waitSignal(grid.link.notice, timeout=100):
        grid.set_compare(CompareMode.DIFFERENCE)
    assert grid.compare_pane is None


def test_a_comparison_opened_from_a_single_pane_is_seen(grid):
    grid.maximise(grid.pane("fbp"))
    QTest.keyClick(grid.pane("fbp"), "d")
    QApplication.processEvents()
    assert grid.compare_pane.isVisible()
    assert grid.maximised is None


def test_panes_that_were_closed_are_gone(grid):
    alive = []
    for _ in range(20):
        for mode in (CompareMode.DIFFERENCE, CompareMode.SWIPE):
            grid.set_compare(mode)
            alive.append(weakref.ref(grid.compare_pane))
        grid.set_compare(CompareMode.NONE)
        pane = grid.add("extra", "Extra")
        pane.set_image(picture(3), PIXEL)
        alive.append(weakref.ref(pane))
        del pane
        grid.remove("extra")
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    assert not [reference for reference in alive if reference() is not None]


# -- measuring ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [Tool.RECTANGLE, Tool.ELLIPSE])
def test_a_region_drawn_once_is_measured_in_every_pane(grid, qtbot, tool):
    grid.link.set_tool(tool)
    window = grid.link.window
    with qtbot.waitSignal(grid.inspector.statistics_changed, timeout=500):
        stroke(grid.pane("fbp"), (100, 90), (180, 150))
    assert grid.link.window == window
    view = grid.pane("fbp").view
    first, last = view.to_mm(QPointF(100, 90)), view.to_mm(QPointF(180, 150))
    box = (*first, *last)
    measured = grid.inspector.statistics
    assert [m.name for m in measured] == ["REFERENCE", "FBP", "DIFFPIR", "DC-PNPDP"]
    for pane, found in zip(grid.image_panes(), measured, strict=True):
        inside = pane.image[region_mask(pane.image.shape, PIXEL, box, tool is Tool.ELLIPSE)]
        inside = inside.astype(np.float64)
        assert inside.size > 50
        assert found.statistics.mean == pytest.approx(inside.mean())
        assert found.statistics.sd == pytest.approx(inside.std())
        assert found.statistics.minimum == inside.min()
        assert found.statistics.maximum == inside.max()
        assert found.statistics.area_mm2 == pytest.approx(inside.size * 0.64)
        assert f"mean {inside.mean():.1f} HU" in pane.overlay.text.bottom_right
        shape = pane.view._rectangle if tool is Tool.RECTANGLE else pane.view._ellipse
        assert shape.isVisible()
        assert shape.rect().getCoords() == pytest.approx(box)


def test_a_region_can_be_moved_and_resized_and_removed(grid):
    grid.link.set_tool(Tool.RECTANGLE)
    pane = grid.pane("fbp")
    stroke(pane, (100, 90), (180, 150))
    box = np.array(grid.link.measurements.region.box)
    scale = pane.view.pixels_per_mm()
    stroke(pane, (140, 120), (150, 140))
    moved = np.array(grid.link.measurements.region.box)
    np.testing.assert_allclose(moved - box, np.array([10, 20, 10, 20]) / scale)
    stroke(pane, (190, 170), (200, 190))
    resized = np.array(grid.link.measurements.region.box)
    np.testing.assert_allclose(resized[:2], moved[:2])
    np.testing.assert_allclose(resized[2:] - moved[2:], np.array([10, 20]) / scale)
    QTest.keyClick(pane, Qt.Key.Key_Delete)
    assert grid.link.measurements.region is None
    assert not pane.view._rectangle.isVisible()
    assert not any("mean" in line for line in pane.overlay.text.bottom_right)


def test_the_numbers_follow_a_running_image_but_not_every_frame(grid, qtbot):
    grid.link.set_tool(Tool.RECTANGLE)
    stroke(grid.pane("fbp"), (100, 90), (180, 150))
    calls = []
    grid.inspector.statistics_changed.connect(calls.append)
    with qtbot.waitSignal(grid.inspector.statistics_changed, timeout=5 * REFRESH_MS):
        for seed in range(20):
            grid.pane("fbp").set_image(picture(seed), PIXEL)
    assert len(calls) == 1
    region = grid.link.measurements.region
    expected = roi_statistics(picture(19), PIXEL, region.box)
    assert calls[0][1].statistics == expected


def test_a_line_is_one_plot_of_all_panes(grid, qtbot):
    plot = ProfilePlot()
    qtbot.addWidget(plot)
    grid.inspector.profiles_changed.connect(plot.set_profiles)
    grid.link.set_tool(Tool.LINE)
    stroke(grid.pane("reference"), (60, 100), (200, 130))
    line = grid.link.measurements.line
    assert list(plot.curves) == ["REFERENCE", "FBP", "DIFFPIR", "DC-PNPDP"]
    for pane in grid.image_panes():
        x, y = plot.curves[pane.name].getData()
        expected = line_profile(pane.image, PIXEL, line.start, line.end)
        np.testing.assert_array_equal(x, expected.distance_mm)
        np.testing.assert_array_equal(y, expected.values)
        assert plot.curves[pane.name].opts["pen"].color().name() == pane.run_style.colour.lower()
    items = len(plot.getPlotItem().items)
    stroke(grid.pane("reference"), (200, 130), (220, 60))  # its end, taken and moved
    assert grid.link.measurements.line.start == pytest.approx(line.start)
    assert len(plot.getPlotItem().items) == items
    grid.remove("fbp")
    grid.link.measurements.set_line(None)
    assert not plot.curves
    assert not plot.getPlotItem().listDataItems()


def test_a_click_is_not_a_region(grid):
    grid.link.set_tool(Tool.ELLIPSE)
    QTest.mouseClick(grid.pane("fbp").view.viewport(), LEFT, NONE, QPoint(80, 80))
    assert grid.link.measurements.region is None
    QTest.keyClick(grid.pane("fbp"), Qt.Key.Key_Escape)
    assert grid.link.tool is Tool.WINDOW


def test_regions_follow_turn_and_zoom(grid):
    grid.link.set_tool(Tool.RECTANGLE)
    pane = grid.pane("fbp")
    stroke(pane, (100, 90), (180, 150))
    before = grid.inspector.statistics[1].statistics
    grid.link.rotate(True)
    grid.link.set_zoom(2)
    grid.inspector.refresh()
    assert grid.inspector.statistics[1].statistics == before
