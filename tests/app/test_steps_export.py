"""Step 7 with the real window: exporting, copying, saving and reopening the workspace."""

import nibabel
import numpy as np
import pydicom
import pytest
from PIL import Image
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QFileDialog
from window_driver import HU, activate, choose, click, press, retype, save_phantom, until

from app.export.plan import REPORT_OF_VISIBLE

CTRL = Qt.KeyboardModifier.ControlModifier
CTRL_SHIFT = CTRL | Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(scope="module")
def finished(shared):
    shared.open(save_phantom(shared.folder), HU)
    shared.fill(method="dc-pnpdp", prior="tv", nfe=4, cg_iterations=3)
    click(shared.window.left.solver.both)
    shared.wait_idle()
    return shared


@pytest.fixture
def runs(finished, bench):
    activate(bench.window)
    return bench


def entry_of(bench, solver):
    return next(entry for entry in bench.runs() if entry.solver == solver)


def export(bench, folder, formats, what=None):
    """Through the dialog; waits for the end and closes it."""
    window = bench.window
    folder.mkdir(exist_ok=True)
    press(window, Qt.Key.Key_E, CTRL)
    dialog = window.files.dialog
    for key, box in dialog.formats.boxes.items():
        if box.isChecked() != (key in formats):
            click(box, at=_inside(box))
    if what is not None:
        click(dialog.what.buttons[what], at=_inside(dialog.what.buttons[what]))
    retype(dialog.folder, str(folder))
    retype(dialog.base, "out")
    until(lambda: dialog.export.isEnabled(), what=dialog.export.toolTip())
    click(dialog.export)
    until(lambda: not dialog.presenter.exporting and dialog._last is not None, what="the export")
    assert not dialog._last.failed, dialog._last.details
    said = dialog.notes.text()
    dialog.close()
    return said


def _inside(button):
    """On the little square or circle, whatever the width."""
    return QPoint(8, button.height() // 2)


def test_the_current_run_is_exported_and_reads_back_as_it_was(runs):
    window, entry = runs.window, entry_of(runs, "dc-pnpdp")
    window.show_run(entry.run_id)
    folder = runs.folder / "exported"
    export(runs, folder, ("dicom", "nifti", "png", "numpy"))
    image = entry.images[0]
    np.testing.assert_array_equal(np.load(folder / "out.npy").squeeze(), image)
    data = pydicom.dcmread(folder / "out.dcm")
    stored = data.pixel_array * float(data.RescaleSlope) + float(data.RescaleIntercept)
    assert np.abs(stored - image).max() <= 0.5 * float(data.RescaleSlope) + 1e-3
    assert "DERIVED" in data.ImageType
    volume = nibabel.load(folder / "out.nii.gz").get_fdata().squeeze()
    assert sorted(volume.ravel()) == pytest.approx(sorted(image.ravel()), abs=1e-3)
    low, high = window.grid.link.window.levels
    grey = np.clip((image - low) / (high - low), 0, 1) * 255
    picture = np.asarray(Image.open(folder / "out.png").convert("L")).astype(float)
    zoom = picture.shape[0] // grey.shape[0]  # enlarged until its marks can be read
    off = np.abs(picture - grey.repeat(zoom, 0).repeat(zoom, 1))
    rows, columns = picture.shape
    assert off[rows // 4 : rows // 2, columns // 4 : -columns // 4].max() <= 1
    assert np.mean(off <= 1) > 0.8  # the rest is covered by marks


def test_the_report_of_both_is_one_page(runs):
    folder = runs.folder / "report"
    export(runs, folder, ("dicom",), REPORT_OF_VISIBLE)
    page = (folder / "out.html").read_text("utf-8")
    assert "DC-PnPDP" in page
    assert "DiffPIR" in page
    assert f"{entry_of(runs, 'dc-pnpdp').metrics['psnr']:.2f}" in page


def test_the_image_with_the_focus_is_copied_to_the_clipboard(runs):
    entry = entry_of(runs, "diffpir")
    shown = runs.pane(entry.run_id).picture()
    press(runs.pane(entry.run_id), Qt.Key.Key_C, CTRL_SHIFT)
    copied = QApplication.clipboard().image()
    assert not copied.isNull()
    assert copied.convertToFormat(shown.format()) == shown


def test_curves_and_table_are_copied(runs):
    runs.window.menus.actions["copy curves"].trigger()
    assert QApplication.clipboard().image().width() == runs.window.center.plots.body.width()
    runs.window.menus.actions["copy table"].trigger()
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0].startswith("Run\tNFE")
    assert len(lines) == 1 + len(runs.runs())


def test_a_picture_is_saved(runs):
    path = runs.folder / "pane.png"
    press(runs.window, Qt.Key.Key_E, CTRL_SHIFT)
    (dialog,) = runs.window.findChildren(QFileDialog)
    dialog.selectFile(str(path))
    dialog.accept()
    until(path.exists, what="the picture")
    runs.wait_quiet()
    assert Image.open(path).size[0] > 50


def test_a_workspace_comes_back_as_it_was_left(benches, folders):
    first = benches()
    first.open(save_phantom(folders, slices=3), HU)
    window = first.window
    window.grid.link.set_slice(2)
    retype(window.left.ct.form.rows["views"].editor.line, "14")
    choose(window.left.solver.method_box, "DC-PnPDP")
    first.run(nfe=4, seed=5)
    entry = first.runs()[-1]
    window.store.change(entry.run_id, note="keep this")
    press(first.pane("reference"), Qt.Key.Key_2)
    path = folders / "study.dualscope"
    press(window, Qt.Key.Key_S, CTRL)
    (dialog,) = window.findChildren(QFileDialog)
    dialog.selectFile(str(path))
    dialog.accept()
    until(path.exists, what="the workspace")
    first.wait_quiet()
    asked = (window.left.solver.value(), window.left.ct.value())
    level, names = window.grid.link.window, [run.name for run in first.runs()]
    image, reference = entry.images.copy(), first.pane("reference").image.copy()
    first.close()

    again = benches()
    window = again.window
    window.menus.actions["open workspace"].trigger()
    (dialog,) = window.findChildren(QFileDialog)
    dialog.selectFile(str(path))
    dialog.accept()
    again.wait_opened()
    until(lambda: len(window.store) == 2, what="the runs")
    again.wait_quiet()
    assert [run.name for run in again.runs()] == names
    back = again.runs()[-1]
    np.testing.assert_array_equal(back.images, image)
    assert back.note == "keep this"
    assert window.panes.slice == 2
    np.testing.assert_array_equal(again.pane("reference").image, reference)
    np.testing.assert_array_equal(again.pane(back.run_id).image, image[0])
    assert (window.left.solver.value(), window.left.ct.value()) == asked
    assert window.grid.link.window == level
    assert window.panes.current == back.run_id
