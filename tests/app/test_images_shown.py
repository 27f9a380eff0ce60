"""What a pane shows: the numbers it was given, and what is written around them."""

import numpy as np
import pytest
from pane_events import drag
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsItem

from app.images.display import LinkedView
from app.images.pane import ImagePane

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
    assert pane.readout() == f"signal {image[30, 40]:.4g} @ (40, 30)"


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
