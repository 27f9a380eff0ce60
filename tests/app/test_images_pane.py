"""One pane: what mouse and keys do to it, and that it shows the numbers it was given."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsItem

from app.images.display import PRESETS, LinkedView
from app.images.pane import ImagePane
from app.images.window import DEFAULT_CT, DRAG_PIXELS, WindowLevel
from engine.data.writers.window import DEFAULT_CT_WINDOW, linear_window, window_to_bytes

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


@pytest.fixture
def pane(qtbot):
    pane = ImagePane()
    qtbot.addWidget(pane)
    pane.resize(402, 430)
    pane.set_image(picture())
    pane.show()
    QApplication.processEvents()
    return pane


def drag(pane, button, dx, dy, start=(150, 150)):
    target = pane.view.viewport()
    first = QPoint(*start)
    QTest.mousePress(target, button, NONE, first)
    QTest.mouseMove(target, first + QPoint(dx // 2, dy // 2))
    QTest.mouseMove(target, first + QPoint(dx, dy))
    QTest.mouseRelease(target, button, NONE, first + QPoint(dx, dy))


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
    with qtbot.waitSignal(pane.link.notice, timeout=100):
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
    with qtbot.waitSignal(pane.maximise_requested, timeout=200):
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


# -- what is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize("keys", ["", "r", "h", "v", "rh", "llv", "rrr"])
@pytest.mark.parametrize("zoom", [1.0, 3.3])
def test_the_readout_is_the_pixel_under_the_cursor(pane, keys, zoom):
    image = np.arange(60 * 80, dtype=np.float32).reshape(60, 80)
    pane.set_image(image, (1.5, 0.7))
    for key in keys:
        QTest.keyClick(pane, key)
    pane.link.set_zoom(zoom)
    # the pixel's place by what is painted: one white pixel is looked for on the screen
    row, column = 33, 38
    QTest.mouseMove(pane.view.viewport(), bright_spot(pane, image.shape, row, column))
    assert pane.overlay.text.bottom_left[0] == f"HU {image[row, column]:.0f} @ ({column}, {row})"


def bright_spot(pane, shape, row, column):
    """Where on the screen the given pixel is painted, found without the pane's own geometry."""
    image, spacing, window = pane.image, pane.view.pixel_mm, pane.link.window
    mark = np.full(shape, -2000, np.float32)
    mark[row, column] = 2000
    pane.overlay.hide()
    pane.set_image(mark, spacing)
    shot = pane.snapshot().convertToFormat(shot_format())
    pane.set_image(image, spacing)
    pane.overlay.show()
    assert pane.link.window == window
    grey = np.frombuffer(shot.constBits(), np.uint8).reshape(shot.height(), shot.bytesPerLine())
    rows, columns = np.nonzero(grey[:, : shot.width()] > 128)
    return QPoint(round(columns.mean()), round(rows.mean()))


def shot_format():
    from PySide6.QtGui import QImage

    return QImage.Format.Format_Grayscale8


def test_the_readout_of_mr_is_relative(pane):
    image = np.linspace(0, 1, 4800, dtype=np.float32).reshape(60, 80)
    pane.set_image(image, modality="MR")
    pane.link.set_cursor((0.5, 0.5))
    assert pane.readout() == f"rel. {image[30, 40]:.4g} @ (40, 30)"


def test_outside_the_image_and_after_leaving_there_is_no_readout(pane):
    pane.link.set_cursor((500, 0))
    assert pane.readout() == ""
    pane.link.set_cursor((1, 1))
    assert pane.readout()
    pane.view.leaveEvent(None)
    assert pane.readout() == ""


def test_oblong_pixels_keep_their_shape(pane):
    pane.set_image(picture(60, 60), (2.0, 1.0))
    screen = pane.view.mm_to_screen().mapRect(
        pane.view.image_item.mapRectToParent(pane.view.image_item.boundingRect())
    )
    assert screen.height() / screen.width() == pytest.approx(2)


def test_a_pixel_that_is_no_number_is_black_named_and_read_as_such(pane):
    image = picture()
    image[30, 40] = np.nan
    image[0, 0] = np.inf
    pane.set_image(image)
    assert np.isfinite(pane.view.image_item.image).all()
    assert "2 px not a number" in pane.overlay.text.bottom_right
    pane.link.set_cursor((0.5, 0.5))
    assert pane.readout() == "HU NaN @ (40, 30)"


def test_the_caller_may_reuse_its_buffer(pane):
    buffer = picture()
    pane.set_image(buffer)
    buffer[:] = -1
    assert not (pane.image == -1).any()


def test_sizes_may_change_from_frame_to_frame(pane):
    for rows, columns in ((10, 10), (64, 32), (7, 90), (256, 256)):
        pane.set_image(picture(rows, columns), (0.5, 0.5))
        QApplication.processEvents()
        screen = pane.view.mm_to_screen().mapRect(
            pane.view.image_item.mapRectToParent(pane.view.image_item.boundingRect())
        )
        width, height = pane.view.pane_size
        assert max(screen.width() / width, screen.height() / height) == pytest.approx(0.98)


@pytest.mark.parametrize("bad", [np.zeros((0, 5)), np.zeros(7), np.zeros((3, 4, 5))])
def test_what_is_no_image_is_refused(pane, bad):
    with pytest.raises(ValueError, match="rows and columns"):
        pane.set_image(bad)


def count_items(item: QGraphicsItem) -> int:
    return 1 + sum(count_items(child) for child in item.childItems())


def test_five_hundred_frames_leave_no_item_behind(pane):
    pane.link.set_slice_count(3)
    frames = [picture(40, 40, seed) for seed in range(4)]
    pane.set_image(frames[0])
    QApplication.processEvents()
    items, objects = len(pane.view.scene().items()), len(pane.findChildren(object))
    for number in range(500):
        pane.set_image(frames[number % 4])
        if number % 50 == 0:
            QApplication.processEvents()
    assert len(pane.view.scene().items()) == items
    assert len(pane.findChildren(object)) == objects


def test_the_patient_is_masked_until_told_otherwise(pane):
    assert pane.overlay.text.top_left == ()
    pane.set_patient("Doe^Jane", "12345")
    assert pane.overlay.text.top_left == ("***",)
    pane.set_patient_masked(False)
    assert pane.overlay.text.top_left == ("Doe^Jane", "12345")
    pane.set_patient_masked(True)
    assert pane.overlay.text.top_left == ("***",)


def test_a_reconstruction_says_how_and_that_it_is_research(pane):
    assert "RESEARCH" not in pane.overlay.text.top_right
    pane.set_run_lines("DC-PnPDP", "20 views")
    assert pane.overlay.text.top_right == ("DC-PnPDP", "20 views", "RESEARCH")


def test_the_caption_gives_name_and_quality_with_units(pane):
    pane.set_caption("DiffPIR", 33.912, 0.91237)
    assert (pane.caption.name, pane.caption.numbers) == ("DiffPIR", "33.91 dB  SSIM 0.9124")
    assert "DiffPIR" in pane.accessibleName()


def test_an_empty_pane_says_what_to_do_and_ignores_the_mouse(qtbot):
    pane = ImagePane(LinkedView())
    qtbot.addWidget(pane)
    pane.resize(300, 300)
    pane.set_empty_text("Drop a folder here")
    pane.show()
    assert pane.overlay.text.middle == "Drop a folder here"
    drag(pane, RIGHT, 0, 10)
    QTest.mouseMove(pane.view.viewport(), QPoint(50, 50))
    QTest.keyClick(pane, "0")
    pane.grab()


def test_the_colour_bar_shows_the_ends_of_the_window(pane):
    assert pane.overlay.text.bar is None
    pane.set_colour_bar(True)
    QTest.keyClick(pane, "1")
    low, high = pane.link.window.levels
    assert (pane.overlay.text.bar.low, pane.overlay.text.bar.high) == (f"{low:.0f}", f"{high:.0f}")
    assert pane.overlay.text.bar.unit == "HU"
