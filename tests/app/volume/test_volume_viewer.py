"""Looking at a stored volume: the right voxels, linked cuts, two volumes, exports, bad folders."""

import shutil

import numpy as np
import pydicom
import pytest
from pane_events import LEFT, drag, stroke
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from volume_runs import plan_of, run_volume, small_job
from volume_series import COUNT, SIDE, save_series
from window_driver import choose, click, press, sentences, until, wheel

from app.tools.volume.source import DIFFERENCE, NOT_MEASURED, REFERENCE, RESULT, VolumeSource
from engine.spec.control import RunControl
from engine.workflows.volume.assemble import Volume
from engine.workflows.volume.folder import VolumeFolder

LAST = COUNT - 1


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two volumes of one series: the second is coupled."""
    root = tmp_path_factory.mktemp("volumes")
    path = save_series(root / "phantom.nii")
    for name, weight in (("alone", 0.0), ("coupled", 0.5)):
        settings = {"couple_z": weight}
        plan = plan_of(small_job(path, options={"unit": "hu"}, settings=settings), batch=COUNT)
        run_volume(root / name, plan)
        Volume(VolumeFolder.open(root / name)).write_facts()
    return root


@pytest.fixture
def looked(bench, made):
    """The view of the first volume."""
    looking = bench.window.volumes.browser
    looking.open(str(made / "alone"))
    wait_cuts(bench)
    looking.view.show_what(RESULT)
    bench.wait_quiet()
    yield looking.view
    bench.wait_quiet()
    looking.close()
    looking.sources = {}


def wait_cuts(bench):
    looking = bench.window.volumes.browser
    until(
        lambda: looking.view is not None and looking.view.panes.panes[2].image is not None,
        what="the cuts",
    )
    bench.wait_quiet()


def values_of(folder):
    return np.array(Volume(VolumeFolder.open(folder)).values)


def assert_cuts_are(panes, volume, voxel):
    """As a radiologist expects them of slices from the feet upwards."""
    s, r, c = voxel
    for pane, wanted in zip(panes, (volume[s], volume[::-1, r], volume[::-1, :, c]), strict=True):
        np.testing.assert_array_equal(pane.image, wanted)


def at(pane, point_mm):
    where = pane.view.mm_to_screen().map(*map(float, point_mm))
    return QPoint(round(where[0]), round(where[1]))


def click_voxel(pane, column, row):
    mm = pane.view.pixel_mm
    rows, columns = pane.image.shape
    point = (column + 0.5 - columns / 2) * mm[1], (row + 0.5 - rows / 2) * mm[0]
    QTest.mouseClick(pane.view.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, at(pane, point))


def test_a_click_in_one_cut_moves_the_other_two_to_the_same_voxel(bench, looked, made):
    volume, panes = values_of(made / "alone"), looked.panes
    axial, coronal, sagittal = panes.panes
    assert_cuts_are(panes.panes, volume, panes.voxel)
    click_voxel(axial, 5, 20)
    bench.wait_quiet()
    assert panes.voxel[1:] == (20, 5)
    assert_cuts_are(panes.panes, volume, panes.voxel)
    click_voxel(coronal, 9, 1)  # the head is up: the second row is the last slice but one
    bench.wait_quiet()
    assert panes.voxel == (LAST - 1, 20, 9)
    assert_cuts_are(panes.panes, volume, panes.voxel)
    click_voxel(sagittal, 30, LAST)
    bench.wait_quiet()
    assert panes.voxel == (0, 30, 9)
    assert_cuts_are(panes.panes, volume, panes.voxel)
    wheel(coronal, -2)
    bench.wait_quiet()
    assert panes.voxel == (0, SIDE - 1, 9), "the wheel does not leave the volume"
    assert_cuts_are(panes.panes, volume, panes.voxel)


def test_the_crosshair_is_dragged_and_any_other_drag_changes_the_window(bench, looked, made):
    axial = looked.panes.panes[0]
    looked.panes.go_to((3, 16, 16))
    bench.wait_quiet()
    window, cross = axial.window_model.window, at(axial, axial.link.state.crosshair)
    stroke(axial, (cross.x(), cross.y()), (cross.x() + 60, cross.y() + 40))
    bench.wait_quiet()
    _, row, column = looked.panes.voxel
    assert row > 16
    assert column > 16
    assert axial.window_model.window == window
    press(axial, Qt.Key.Key_Space)
    assert axial.link.state.crosshair is not None, "the crosshair went with the zoom"
    drag(axial, LEFT, 40, 0, start=(20, 20))
    assert axial.window_model.window.width > window.width
    assert all(pane.window_model.window.width > window.width for pane in looked.panes.panes)
    assert looked.panes.voxel == (3, row, column)
    press(axial, Qt.Key.Key_2)
    assert looked.window_box.currentText().startswith("Lung")


def test_cuts_have_the_aspect_and_the_letters_of_the_patient(looked):
    _, coronal, sagittal = looked.panes.panes
    assert coronal.view.pixel_mm == (3.0, 1.5)
    assert coronal.view.field_mm == (SIDE * 1.5, COUNT * 3.0)
    assert coronal.overlay.text.letters == ("R", "H", "L", "F")
    assert sagittal.overlay.text.letters == ("A", "H", "P", "F")
    coronal.link.set_cursor(coronal.link.state.crosshair)
    assert coronal.readout().startswith("HU ")
    coronal.link.set_cursor(None)


def test_reference_and_difference_are_of_the_same_voxels(bench, looked, made):
    volume = values_of(made / "alone")
    truth = np.array(Volume(VolumeFolder.open(made / "alone")).reference)
    click(looked.whats[REFERENCE])
    bench.wait_quiet()
    assert_cuts_are(looked.panes.panes, truth, looked.panes.voxel)
    assert looked.panes.panes[0].overlay.text.top_right == (), "a reference is no reconstruction"
    click(looked.whats[DIFFERENCE])
    bench.wait_quiet()
    assert looked.panes.stacks[0].currentWidget() is looked.panes.differences[0]
    assert_cuts_are(looked.panes.differences, volume - truth, looked.panes.voxel)
    first, second, _ = looked.panes.differences
    first.window_model.set(first.auto_window())
    assert second.window_model.window == first.window_model.window


def test_two_volumes_are_seen_in_turn_in_the_same_place(bench, looked, made):
    looked.panes.go_to((2, 11, 7))
    bench.window.volumes.browser.compare(str(made / "coupled"))
    until(lambda: looked.letter == "B", what="the other volume")
    bench.wait_quiet()
    assert looked.panes.voxel == (2, 11, 7)
    assert_cuts_are(looked.panes.panes, values_of(made / "coupled"), (2, 11, 7))
    assert "coupled 0.5" in looked.title.text()
    press(looked, Qt.Key.Key_A)
    bench.wait_quiet()
    assert_cuts_are(looked.panes.panes, values_of(made / "alone"), (2, 11, 7))
    assert [row[0] for row in looked.table.figures.table.rows] == ["A", "B"]
    flicker = [looked.facts[letter].figures.flicker for letter in "AB"]
    assert flicker[1] < flicker[0]


def test_a_volume_is_exported_as_a_series_and_as_a_file(bench, looked, made, tmp_path):
    volume = values_of(made / "alone")
    click(looked.export)
    dialog = bench.window.volumes.browser.exports
    dialog.folder.setText(str(tmp_path))
    for title in ("DICOM", "NumPy"):
        choose(dialog.format, title)
        click(dialog.export)
        until(lambda: not dialog.presenter.busy, what="the export")
        assert "was written" in dialog.status.text()
    files = sorted((tmp_path / "volume-dicom").glob("*.dcm"))
    assert len(files) == COUNT
    slices = [pydicom.dcmread(path) for path in files]
    np.testing.assert_allclose(slices[3].pixel_array, volume[3], atol=0.5)
    assert slices[1].ImagePositionPatient[2] - slices[0].ImagePositionPatient[2] == 3
    np.testing.assert_array_equal(np.load(tmp_path / "volume.npy"), volume)
    click(dialog.export)
    until(lambda: not dialog.presenter.busy, what="the export")
    assert dialog.status.text().startswith("⚠ "), "nothing is replaced unasked"
    dialog.replace.setChecked(True)
    dialog.presenter.start(dialog.value())
    dialog.presenter.cancel()
    until(lambda: not dialog.presenter.busy, what="the cancelled export")
    np.testing.assert_array_equal(np.load(tmp_path / "volume.npy"), volume)
    assert not list(tmp_path.glob(".dualscope-*"))
    dialog.close()


def test_a_damaged_slice_is_seen_as_missing_and_a_damaged_plan_is_one_sentence(
    bench, looked, made, tmp_path
):
    broken = tmp_path / "broken"
    shutil.copytree(made / "alone", broken)
    (broken / "slice-00002.safetensors").write_bytes(b"x" * 100)
    looking = bench.window.volumes.browser
    looking.open(str(broken))
    until(lambda: looked.facts, what="the damaged volume")
    bench.wait_quiet()
    assert looked.shown.stored == frozenset(range(COUNT)) - {2}
    assert np.isnan(looked.panes.panes[1].image[LAST - 2]).all()
    assert "7 of 8 slices are stored." in looked.notes.text()
    (broken / "volume.json").write_text("{")
    looking.sources = {}
    looking.open(str(broken))
    until(lambda: sentences(bench.window), what="the sentence")
    assert sentences(bench.window)[-1].endswith("volume.json is not valid JSON.")
    assert looked.panes.panes[0].image is None, "another volume is still seen"
    assert not looked.export.isEnabled()


def test_measuring_can_be_stopped_and_the_view_says_that_it_is_missing(made, tmp_path):
    from app.tools.volume.job import _measured

    stopped = tmp_path / "stopped"
    shutil.copytree(made / "alone", stopped)
    (stopped / "summary.json").unlink()
    control = RunControl()
    control.cancel()
    assert not _measured(VolumeFolder.open(stopped), control)
    assert not (stopped / "summary.json").exists()
    facts = VolumeSource.open(stopped).facts()
    assert facts.figures is None
    assert NOT_MEASURED in facts.notes
    assert facts.cuts[1].pixel_mm == (3.0, 1.5), "the data are still where the plan says"


def test_the_next_volume_is_seen_through_the_window_of_the_last(bench, looked, made):
    press(looked.panes.panes[0], Qt.Key.Key_4)  # bone
    chosen = looked.panes.window_model.window
    looking = bench.window.volumes.browser
    looking.open(str(made / "coupled"))
    until(lambda: looking.sources and looking.sources["A"].place.name == "coupled")
    wait_cuts(bench)
    assert looked.panes.window_model.window == chosen
    assert looked.window_box.currentText().startswith("Bone")
