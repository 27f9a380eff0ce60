"""Two images against each other: difference, flicker and swipe."""

import gc
import weakref

import numpy as np
import pytest
from pane_events import PIXEL, SHIFT, move, picture, stroke
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.images.colours import DIVERGING
from app.images.compare import FLICKER_MS, BlendPane, DifferencePane
from app.images.grid import CompareMode, PaneGrid


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
    with qtbot.waitSignals([pane.shown_changed, pane.shown_changed]):
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
    with qtbot.waitSignal(grid.link.notice):
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
