"""Step 6 with the real window: the window of the image, its readout, letters and overlay."""

import numpy as np
import pytest
from data_files import FOLDER
from dicom_files import SECRETS, write_series
from pane_events import drag, move
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QMenu
from window_driver import HU, choose, press, save_phantom, wheel

from app.images.window_level import PRESETS

Key = Qt.Key


@pytest.fixture
def ct(bench):
    if bench.window.data.current is None or bench.window.data.current.options != HU:
        bench.open(save_phantom(bench.folder), HU)
    return bench


@pytest.fixture
def dicom(bench):
    folder = bench.folder / "series"
    if not folder.exists():
        write_series(folder, [0.0, 2.0, 4.0])
    bench.open(folder)
    return bench


def level(bench):
    window = bench.window.grid.link.window
    return window.centre, window.width


@pytest.mark.parametrize("number", range(1, 10))
def test_the_keys_1_to_9_choose_the_presets(ct, number):
    preset = PRESETS[number - 1]
    press(ct.pane("reference"), Key(Key.Key_0 + number))
    assert level(ct) == (preset.centre, preset.width)
    assert ct.window.center.bar.window_box.currentText().startswith(preset.name)


def test_0_takes_the_range_of_the_image_and_i_inverts(ct):
    pane = ct.pane("reference")
    press(pane, Key.Key_0)
    low, high = ct.window.grid.link.window.levels
    assert (low, high) == pytest.approx((-1000, 400), abs=1)
    before = pane.view.grab().toImage()
    press(pane, Key.Key_I)
    assert ct.window.grid.link.window.invert
    assert pane.view.grab().toImage() != before
    press(pane, Key.Key_I)
    assert not ct.window.grid.link.window.invert


def test_the_menu_and_the_box_choose_presets(ct):
    menus = [menu for menu in ct.window.findChildren(QMenu) if menu.title() == "&Window preset"]
    actions = {action.text().split("  ")[0]: action for action in menus[0].actions()}
    actions["Stroke"].trigger()
    assert level(ct) == (40, 40)
    choose(ct.window.center.bar.window_box, "Lung")
    assert level(ct) == (-600, 1500)


def test_left_drag_widens_to_the_right_and_darkens_downwards(ct):
    pane = ct.pane("reference")
    press(pane, Key.Key_1)
    drag(pane, Qt.MouseButton.LeftButton, 60, 0)
    assert level(ct)[1] > 400
    assert level(ct)[0] == pytest.approx(50, abs=1)
    drag(pane, Qt.MouseButton.LeftButton, 0, 60)
    assert level(ct)[0] > 100


def test_the_readout_is_the_pixel_under_the_cursor(ct):
    pane = ct.pane("reference")
    for column, row in ((31, 41), (2, 3), (20, 30)):
        point = pane.view.mm_to_screen().map(QPointF(column - 31.5, row - 31.5))
        move(pane, point.x(), point.y())
        assert (
            pane.overlay.text.bottom_left[0]
            == f"HU {pane.image[row, column]:.0f} @ ({column}, {row})"
        )


def test_colour_bars_come_and_go_with_the_menu(ct):
    pane, action = ct.pane("reference"), ct.window.menus.actions["bars"]
    assert pane.overlay.text.bar is None
    action.trigger()
    assert pane.overlay.text.bar.unit == "HU"
    action.trigger()
    assert pane.overlay.text.bar is None


def test_a_pane_made_later_has_the_colour_bar_that_was_asked_for(ct):
    ct.window.menus.actions["bars"].trigger()
    entry = ct.run(nfe=2)
    assert ct.pane(entry.run_id).overlay.text.bar is not None
    ct.window.menus.actions["bars"].trigger()


def test_the_letters_of_the_orientation_stand_at_the_edges(dicom):
    letters = dicom.pane("reference").overlay.text.letters
    assert (letters.left, letters.right, letters.top, letters.bottom) == ("R", "L", "A", "P")
    press(dicom.pane("reference"), Key.Key_H)
    letters = dicom.pane("reference").overlay.text.letters
    assert (letters.left, letters.right) == ("L", "R")
    press(dicom.pane("reference"), Key.Key_Space)


def test_data_without_orientation_have_no_letters(ct):
    ct.open(save_phantom(ct.folder), HU)
    letters = ct.pane("reference").overlay.text.letters
    assert not any((letters.left, letters.right, letters.top, letters.bottom))


def test_the_patients_name_is_masked_until_the_menu_shows_it(dicom):
    pane, action = dicom.pane("reference"), dicom.window.menus.actions["mask"]
    assert action.isChecked()
    assert pane.overlay.text.top_left == ("***",)
    action.trigger()
    assert SECRETS[0] in pane.overlay.text.top_left[0]
    assert dicom.window.settings.get("patient_masked") is False
    action.trigger()
    assert pane.overlay.text.top_left == ("***",)


def test_a_run_of_named_data_is_masked_too_and_says_how_it_was_made(dicom):
    entry = dicom.run(nfe=2)
    text = dicom.pane(entry.run_id).overlay.text
    assert text.top_left == ("***",)
    assert text.top_right[0] == "DC-PnPDP"
    assert "NFE 2" in text.top_right
    assert text.top_right[-1] == "RESEARCH"
    assert np.isfinite(dicom.pane(entry.run_id).image).all()


def test_digits_choose_a_window_wherever_the_focus_is_but_in_a_field(ct):
    press(ct.window.center.bar.window_box, Key.Key_4)
    assert level(ct) == (400, 1800)
    press(ct.window.right.table.table, Key.Key_5)
    assert level(ct) == (40, 80)
    field = ct.window.left.ct.form.rows["views"].editor.control
    press(field, Key.Key_1)
    assert level(ct) == (40, 80)
    press(ct.window.center.plots.foldButton, Key.Key_I)
    assert ct.window.grid.link.window.invert
    press(ct.pane("reference"), Key.Key_I)


def test_the_wheel_goes_with_the_instance_numbers_of_the_series(dicom):
    numbers = [int(dicom.window.data.current.dataset.headers(n).InstanceNumber) for n in range(3)]
    assert numbers == [3, 2, 1]  # against the places of the slices
    press(dicom.pane("reference"), Key.Key_Home)
    seen = [numbers[dicom.window.panes.slice]]
    for _ in range(2):
        wheel(dicom.pane("reference"), -1)
        seen.append(numbers[dicom.window.panes.slice])
    assert seen == [1, 2, 3]


def test_a_files_own_window_is_the_first_one(bench):
    bench.open(FOLDER / "693_J2KI.dcm")
    window = bench.window.data.current.window
    assert window is not None
    assert level(bench) == window
