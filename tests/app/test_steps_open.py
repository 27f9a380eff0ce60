"""Step 1 with the real window: opening files, folders, drops and demos; going through slices."""

from pathlib import Path

import nibabel
import numpy as np
import pytest
from data_files import FOLDER, MIXED, RAYS, STUDY, copy_of, sinogram_file
from dicom_files import write_series
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel
from window_driver import HU, choose, click, phantom, retype, save_phantom, sentences, until, wheel

COPY = Qt.DropAction.CopyAction
LEFT, NO_KEYS = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
SERIES = FOLDER / "dicomdirtests" / "98892001"  # two CT series, of 2 and of 5 slices


def drop(window, path):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    at = QPoint(40, 40)
    for event in (
        QDragEnterEvent(at, COPY, mime, LEFT, NO_KEYS),
        QDropEvent(QPointF(at), COPY, mime, LEFT, NO_KEYS),
    ):
        QApplication.sendEvent(window, event)


def answer_file_dialog(window, path):
    """Type the name into the file dialog that is open, and accept it."""
    (dialog,) = window.findChildren(QFileDialog)
    dialog.selectFile(str(path))
    dialog.accept()


@pytest.mark.parametrize(("name", "modality"), [("ct", "CT"), ("mri", "MR")])
def test_a_demo_opens_from_the_file_menu(bench, name, modality):
    window, before = bench.window, bench.window.setup.data
    window.menus.actions[f"demo {name}"].trigger()
    bench.wait_opened(before)
    assert window.data.current.modality == modality
    assert bench.pane("reference").image.shape == window.data.current.image_size
    assert window.windowTitle().startswith("CT demo" if name == "ct" else "MRI demo")
    assert window.left.ct.isVisible() == (modality == "CT")
    assert window.left.mri.isVisible() == (modality == "MR")


def test_a_file_is_chosen_in_the_dialog_and_said_to_be_an_image_in_hu(bench):
    window, path = bench.window, save_phantom(bench.folder, name="chosen.npy")
    before = window.setup.data
    window.menus.actions["open"].trigger()
    answer_file_dialog(window, path)
    until(lambda: window.geometry_asker._shown is not None, what="the question")
    question = window.geometry_asker._shown
    words = [choice.words for choice in question.choices]
    question.group.button(words.index("CT image in HU")).click()
    click(question.ok)
    bench.wait_opened(before)
    np.testing.assert_array_equal(bench.pane("reference").image, phantom())
    assert window.settings.get("folders")["open"] == str(bench.folder)


def row_of(series, row):
    return series.visualRect(series.items.index(row, 0)).center()


def test_a_dicom_folder_lists_its_series_and_a_click_opens_another(bench):
    bench.open(STUDY)
    series, before = bench.window.browser.series, bench.window.setup.data
    assert series.items.rowCount() == 7
    assert before.name == "MR series 700"
    click(series.viewport(), at=row_of(series, 5))
    bench.wait_opened(before)
    assert bench.window.data.current.name == "MR series 2"
    assert series.currentIndex().row() == 5


def test_a_series_that_cannot_be_opened_says_why_and_the_open_one_stays(bench):
    window = bench.window
    bench.open(SERIES)
    before, series = window.setup.data, window.browser.series
    click(series.viewport(), at=row_of(series, 0))
    until(lambda: sentences(window), what="the message")
    assert "localizer" in sentences(window)[-1]
    assert window.setup.data is before
    assert series.currentIndex().row() == 1


def test_the_series_get_thumbnails(bench):
    bench.open(SERIES)
    icons = [bench.window.browser.series.items.item(row).icon() for row in range(2)]
    pictures = [icon.pixmap(96, 96).toImage() for icon in icons]
    assert pictures[0] != pictures[1]


def test_every_warning_about_the_data_is_shown(bench):
    bench.open(MIXED)
    browser = bench.window.browser
    lists = (browser.warnings, browser.checks)
    shown = [label.text() for part in lists for label in part.findChildren(QLabel)]
    assert any("161 slices are missing" in text for text in shown)
    assert any("There are 4 series" in text for text in shown)
    assert bench.window.browser.warnings.isVisible()


def test_what_was_found_is_listed(bench):
    bench.open(SERIES)
    window = bench.window
    names = [label.text() for label in window.browser.facts.findChildren(QLabel)]
    assert "16 × 16" in " ".join(names) or "16 x 16" in " ".join(names)


def test_a_dropped_folder_opens(bench):
    before = bench.window.setup.data
    drop(bench.window, MIXED)
    bench.wait_opened(before)
    assert bench.window.data.current.modality == "CT"
    assert bench.window.browser.series.items.rowCount() == 4


def test_a_nifti_opens(bench):
    volume = np.stack([phantom(n) for n in range(3)], axis=-1)
    path = bench.folder / "volume.nii.gz"
    nibabel.save(nibabel.Nifti1Image(volume, np.diag([0.8, 0.8, 2.0, 1.0])), path)
    bench.open(path, {"modality": "ct", "unit": "hu"})
    assert bench.window.data.current.count == 3
    assert bench.pane("reference").image.max() == pytest.approx(400)


def test_a_sinogram_without_geometry_is_asked_for_it_and_opens(bench):
    window, before = bench.window, bench.window.setup.data
    window.data.open(str(sinogram_file(bench.folder)), {"kind": "sinogram"})
    until(lambda: window.geometry_asker.dialog is not None, what="the dialog")
    dialog = window.geometry_asker.dialog
    assert not dialog.ok.isEnabled()
    assert "needed" in dialog.ok.toolTip()
    for name, words in (("scan_geometry", "parallel"), ("unit", "line-integral")):
        choose(dialog.form.rows[name].editor.combo, words)
    for name in ("scan_pitch_mm", "scan_range"):
        retype(dialog.form.rows[name].editor.line, f"{RAYS[name]:g}")
    assert dialog.ok.isEnabled(), dialog.ok.toolTip()
    until(lambda: dialog.picture.image is not None, what="the preview")
    bench.wait_quiet()
    click(dialog.ok)
    bench.wait_opened(before)
    assert window.data.current.views.views == 36
    assert window.left.ct.strip.sinogram.shape == (36, 48)


def test_an_opened_file_is_in_the_menu_of_recent_files_and_opens_from_it(bench):
    window, path = bench.window, save_phantom(bench.folder, name="recent.npy")
    bench.open(path, HU)
    bench.open(SERIES)
    window.menus.recent.aboutToShow.emit()
    actions = {action.text(): action for action in window.menus.recent.actions()}
    before = window.setup.data
    actions["recent.npy"].trigger()
    bench.wait_opened(before)
    assert window.data.current.text == str(path)
    assert window.data.current.options == HU


def test_a_broken_file_is_a_message_and_the_old_data_stay(bench):
    window = bench.window
    bench.open(save_phantom(bench.folder), HU)
    before, image = window.setup.data, bench.pane("reference").image
    broken = Path(copy_of(FOLDER / "CT_small.dcm", bench.folder))
    broken.write_bytes(broken.read_bytes()[:700])
    window.data.open(str(broken))
    until(lambda: sentences(window), what="the message")
    assert window.messages.isVisible()
    assert "CT_small.dcm" in sentences(window)[-1]
    assert window.setup.data is before
    assert bench.pane("reference").image is image
    assert window.left.solver.run.isEnabled()


def test_the_wheel_the_slider_and_the_keys_go_through_the_slices(bench):
    window = bench.window
    bench.open(save_phantom(bench.folder, slices=5, name="five.npy"), HU)
    assert window.panes.slice == 2
    pane = bench.pane("reference")

    def shows(number):
        until(lambda: np.array_equal(pane.image, phantom(number)), what=f"slice {number}")
        assert window.browser.slices.words.text() == f"Slice {number + 1} of 5"
        assert window.left.slices.value() == str(number)

    wheel(pane, -1)
    shows(3)
    wheel(pane, 2)
    shows(1)
    window.browser.slices.slider.setFocus()
    QTest.keyClick(window.browser.slices.slider, Qt.Key.Key_Right)
    shows(2)
    pane.setFocus()
    QTest.keyClick(pane, Qt.Key.Key_End)
    shows(4)
    retype(window.browser.slices.spin.lineEdit(), "1")
    QTest.keyClick(window.browser.slices.spin, Qt.Key.Key_Return)
    shows(0)


def test_data_that_a_check_blocks_cannot_be_run_and_the_buttons_say_why(bench, tmp_path):
    write_series(tmp_path, [0.0, 2.0, 2.0, 4.0])
    bench.open(tmp_path)
    solver = bench.window.left.solver
    assert not solver.run.isEnabled()
    assert not solver.both.isEnabled()
    for button in (solver.run, solver.both):
        assert "1 place holds several slices" in button.toolTip()
        assert "folder of their own" in button.toolTip()
    bench.open(SERIES)
    assert solver.run.isEnabled()
