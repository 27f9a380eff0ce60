"""One pane: what mouse and keys do to it, and that it shows the numbers it was given."""

import numpy as np
import pytest
from pane_events import drag
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.images.pane import ImagePane
from app.images.window_level import DEFAULT_CT, DRAG_PIXELS, PRESETS, WindowLevel, WindowModel
from engine.export.outputs import DEFAULT_CT_WINDOW, linear_window, window_to_bytes

LEFT, MIDDLE, RIGHT = (
    Qt.MouseButton.LeftButton,
    Qt.MouseButton.MiddleButton,
    Qt.MouseButton.RightButton,
)
NONE, SHIFT, CTRL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)


def picture(rows=60, columns=80, seed=0):
    return np.random.default_rng(seed).normal(0, 300, (rows, columns)).astype(np.float32)


def wheel(pane, notches, modifiers=NONE, at=(150, 150)):
    position = QPointF(*at)
    target = pane.view.viewport()
    event = QWheelEvent(
        position,
        target.mapToGlobal(position),
        QPoint(),
        QPoint(0, int(120 * notches)),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(target, event)


def span(window):
    low, high = window.levels
    return high - low


# -- the window --------------------------------------------------------------------------------


def test_black_and_white_are_where_the_linear_voi_puts_them():
    window = WindowLevel(40, 400)
    low, high = window.levels
    values = np.array([low, (low + high) / 2, high])
    np.testing.assert_array_equal(window_to_bytes(values, (40, 400)), [0, 128, 255])
    assert (DEFAULT_CT.centre, DEFAULT_CT.width) == DEFAULT_CT_WINDOW


def test_a_range_becomes_the_window_the_engine_exports():
    window = WindowLevel.from_range(0.2, 0.9)
    assert (window.centre, window.width) == pytest.approx(linear_window(0.2, 0.9))


def test_the_narrowest_window_still_has_two_ends():
    for width in (1.0, 0.0, -5.0):
        low, high = WindowLevel(40, width).levels
        assert low < high


def test_the_automatic_window_ignores_a_thousandth_at_either_end():
    image = np.linspace(0, 1, 100_001, dtype=np.float32).reshape(1, -1)
    image[0, :5], image[0, -5:] = -1e6, np.nan
    low, high = WindowLevel.auto(image).levels
    assert low == pytest.approx(0.001, abs=1e-4)
    assert high == pytest.approx(0.999, abs=1e-4)


def test_left_drag_to_the_right_widens_and_leaves_the_middle(pane):
    before = pane.link.window
    drag(pane, LEFT, 100, 0)
    after = pane.link.window
    assert span(after) == pytest.approx(span(before) * (1 + 100 / DRAG_PIXELS))
    assert sum(after.levels) == pytest.approx(sum(before.levels))


def test_left_drag_down_lowers_the_centre_and_up_raises_it(pane):
    before = pane.link.window
    drag(pane, LEFT, 0, 50)
    lowered = pane.link.window
    assert lowered.centre == pytest.approx(before.centre - 50 / DRAG_PIXELS * span(before))
    assert span(lowered) == pytest.approx(span(before))
    drag(pane, LEFT, 0, -50)
    assert pane.link.window.centre == pytest.approx(before.centre)


def test_left_drag_far_to_the_left_keeps_a_window(pane):
    for _ in range(5):
        drag(pane, LEFT, -300, 0, start=(320, 100))
    assert span(pane.link.window) > 0


def test_the_window_reaches_the_screen_and_a_new_image_does_not_reset_it(pane):
    drag(pane, LEFT, 40, 30)
    pane.link.set_zoom(2.5)
    window = pane.link.window
    pane.set_image(picture(90, 70, seed=2) * 50)
    assert pane.link.window == window
    assert pane.link.state.zoom == 2.5
    np.testing.assert_allclose(pane.view.image_item.levels, window.levels)


@pytest.mark.parametrize("number", range(1, 10))
def test_keys_one_to_nine_are_the_presets(pane, number):
    QTest.keyClick(pane, str(number))
    preset = PRESETS[number - 1]
    assert (pane.link.window.centre, pane.link.window.width) == preset[1:]
    assert f"C {preset.centre:.0f} W {preset.width:.0f} HU" in pane.overlay.text.bottom_left


def test_the_two_windows_of_the_paper_are_among_the_presets():
    named = {preset.name: preset for preset in PRESETS}
    for name, low, high in (("Paper LACT", -800, 800), ("Paper SVCT", -175, 500)):
        assert named[name].centre - named[name].width / 2 == low
        assert named[name].centre + named[name].width / 2 == high


def test_zero_is_the_range_of_the_image_and_ctrl_double_click_the_default(pane):
    QTest.keyClick(pane, "0")
    assert pane.link.window == WindowLevel.auto(pane.image)
    QTest.mouseDClick(pane.view.viewport(), LEFT, CTRL, QPoint(100, 100))
    assert pane.link.window == DEFAULT_CT


def test_ctrl_double_click_returns_to_the_window_of_the_file(pane):
    pane.window_model.set_default(WindowLevel(77, 333))
    QTest.mouseDClick(pane.view.viewport(), LEFT, CTRL, QPoint(100, 100))
    assert pane.link.window == WindowLevel(77, 333)


def test_i_inverts_what_is_seen_and_keeps_the_preset(pane):
    pane.set_image(np.full((10, 10), 2000, np.float32))
    centre = pane.view.viewport().rect().center()
    assert pane.snapshot().pixelColor(centre).lightness() == 255
    QTest.keyClick(pane, "i")
    assert pane.snapshot().pixelColor(centre).lightness() == 0
    QTest.keyClick(pane, "2")
    assert pane.link.window.invert


def test_mr_starts_with_its_own_range_and_has_no_presets(qtbot):
    pane = ImagePane()
    qtbot.addWidget(pane)
    image = np.random.default_rng(0).random((20, 20)).astype(np.float32)
    pane.set_image(image, modality="MR")
    window = pane.link.window
    assert window == WindowLevel.auto(image)
    with qtbot.waitSignal(pane.link.notice):
        QTest.keyClick(pane, "3")
    assert pane.link.window == window


# -- zoom, pan, turn, slices -------------------------------------------------------------------


def test_middle_drag_moves_the_image_with_the_mouse(pane):
    before = pane.view.mm_to_screen().map(QPointF(3, 4))
    drag(pane, MIDDLE, 30, -20)
    after = pane.view.mm_to_screen().map(QPointF(3, 4))
    assert (after.x() - before.x(), after.y() - before.y()) == pytest.approx((30, -20))


def test_middle_drag_moves_with_the_mouse_when_turned_and_mirrored_too(pane):
    for key in "rhl r".replace(" ", ""):
        QTest.keyClick(pane, key)
    before = pane.view.mm_to_screen().map(QPointF(3, 4))
    drag(pane, MIDDLE, 30, -20)
    after = pane.view.mm_to_screen().map(QPointF(3, 4))
    assert (after.x() - before.x(), after.y() - before.y()) == pytest.approx((30, -20))


def test_right_drag_down_doubles_the_zoom_about_the_point_pressed(pane):
    point = pane.view.to_mm(QPointF(150, 150))
    drag(pane, RIGHT, 0, 100)
    assert pane.link.state.zoom == pytest.approx(2)
    assert pane.view.to_mm(QPointF(150, 150)) == pytest.approx(point)
    drag(pane, RIGHT, 0, -100)
    assert pane.link.state.zoom == pytest.approx(1)


def test_the_wheel_turns_slices_and_stops_at_the_ends(pane):
    pane.link.set_slice_count(5)
    wheel(pane, -1)
    wheel(pane, -2)
    assert pane.link.state.slice == 3
    assert pane.link.state.zoom == 1
    wheel(pane, -9)
    assert pane.link.state.slice == 4
    wheel(pane, 1)
    assert pane.link.state.slice == 3


def test_parts_of_a_notch_add_up_to_a_slice(pane):
    pane.link.set_slice_count(5)
    for _ in range(3):
        wheel(pane, -0.25)
    assert pane.link.state.slice == 0
    wheel(pane, -0.25)
    assert pane.link.state.slice == 1


def test_ctrl_wheel_zooms_at_the_pointer_and_keeps_the_slice(pane):
    pane.link.set_slice_count(5)
    point = pane.view.to_mm(QPointF(90, 200))
    wheel(pane, 2, CTRL, at=(90, 200))
    assert pane.link.state.zoom == pytest.approx(1.25**2)
    assert pane.view.to_mm(QPointF(90, 200)) == pytest.approx(point)
    assert pane.link.state.slice == 0


def test_zoom_keys(pane):
    QTest.keyClick(pane, "+")
    assert pane.link.state.zoom == pytest.approx(1.25)
    QTest.keyClick(pane, "-")
    QTest.keyClick(pane, "-")
    assert pane.link.state.zoom == pytest.approx(0.8)
    QTest.keyClick(pane, "r")
    QTest.keyClick(pane, "=")
    assert pane.link.state.zoom == 1
    assert pane.link.state.orientation.degrees == 90
    QTest.keyClick(pane, Qt.Key.Key_Space)
    assert pane.link.state.orientation.degrees == 0


def test_slice_keys(pane):
    pane.link.set_slice_count(9)
    for key, number in (("Down", 1), ("Down", 2), ("Up", 1), ("End", 8), ("Home", 0), ("Up", 0)):
        QTest.keyClick(pane, getattr(Qt.Key, f"Key_{key}"))
        assert pane.link.state.slice == number
    assert "Slice 1 / 9" in pane.overlay.text.bottom_right


def test_shift_and_move_sets_the_crosshair_and_escape_route_clears_it(pane):
    target = pane.view.viewport()
    QTest.mouseMove(target, QPoint(100, 120))
    assert pane.link.state.crosshair is None
    move = QPointF(120, 140)
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QMouseEvent

    event = QMouseEvent(
        QEvent.Type.MouseMove,
        move,
        target.mapToGlobal(move),
        Qt.MouseButton.NoButton,
        Qt.MouseButton.NoButton,
        SHIFT,
    )
    QApplication.sendEvent(target, event)
    assert pane.link.state.crosshair == pytest.approx(pane.view.to_mm(move))
    QTest.keyClick(pane, Qt.Key.Key_Space)
    assert pane.link.state.crosshair is None


def test_double_click_asks_for_the_whole_window_and_changes_nothing_else(pane, qtbot):
    window = pane.link.window
    with qtbot.waitSignal(pane.maximise_requested):
        QTest.mouseDClick(pane.view.viewport(), LEFT, NONE, QPoint(100, 100))
    assert pane.link.window == window


def test_shortcuts_of_menus_are_left_to_the_menus(pane):
    QTest.keyClick(pane, "r", CTRL)
    QTest.keyClick(pane, "0", Qt.KeyboardModifier.AltModifier)
    assert pane.link.state.orientation.degrees == 0
    assert pane.link.window == DEFAULT_CT


def test_clicking_takes_the_keyboard(pane, qtbot):
    QTest.mouseClick(pane.view.viewport(), LEFT, NONE, QPoint(10, 10))
    assert pane.focusPolicy() == Qt.FocusPolicy.StrongFocus
    assert pane.isActiveWindow() is False or pane.hasFocus()


def test_micro_ct_chooses_a_window_that_shows_it_and_a_body_the_usual_one():
    model = WindowModel()
    image = np.full((32, 32), -1000.0)
    image[8:20, 8:20] = 80_000.0
    model.meet("CT", image)
    assert model.window.levels == pytest.approx((-1000, 80_000))
    model.forget()
    model.meet("CT", np.clip(image, -1000, 1200))
    assert model.window == DEFAULT_CT
