"""Steps 2 and 3 with the real window: the acquisition, the solver's fields, presets, undo."""

import json

import numpy as np
import pytest
from data_files import RAYS, sinogram_file
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from window_driver import HU, choose, click, pause, press, retype, save_phantom, until

from engine.spec.job import Job

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def ct(bench):
    bench.open(save_phantom(bench.folder), HU)
    return bench


@pytest.fixture
def mr(bench):
    path = bench.folder / "head.npy"
    rows, columns = np.mgrid[-1:1:64j, -1:1:64j]
    np.save(path, ((rows**2 + 1.4 * columns**2 < 0.7) * (2 + rows)).astype(np.float32))
    bench.open(path, {"modality": "mr"})
    return bench


def line(form, name):
    return form.rows[name].editor.line


# -- acquisition ----------------------------------------------------------------------------


def test_typing_views_and_range_changes_the_polar_picture(ct):
    panel = ct.window.left.ct
    before = panel.dial.grab().toImage()
    retype(line(panel.form, "views"), "9")
    retype(line(panel.form, "angular_range"), "90")
    assert len(panel.dial.angles_deg) == 9
    assert panel.dial.span == 90
    assert panel.dial.grab().toImage() != before


def test_the_simulated_sinogram_follows_the_views(ct):
    panel = ct.window.left.ct
    retype(line(panel.form, "views"), "11")
    until(lambda: panel.strip.sinogram is not None and len(panel.strip.sinogram) == 11)
    assert "11 views" in panel.strip.words()
    assert panel.strip.sinogram.max() > 0


def test_a_measured_sinogram_shows_which_views_are_kept(bench):
    path = sinogram_file(bench.folder)
    bench.open(path, {"kind": "sinogram", **RAYS})
    panel = bench.window.left.ct
    assert panel.strip.kept.all()
    retype(line(panel.form, "views"), "12")
    assert panel.strip.kept.sum() == 12
    assert len(panel.dial.angles_deg) == 12
    assert "the 24 dimmed ones are dropped" in panel.strip.words()


def test_what_a_check_blocks_runs_anyway_when_a_person_says_so(bench):
    in_radians = {**RAYS, "scan_range": 3.14159}
    bench.open(sinogram_file(bench.folder), {"kind": "sinogram", **in_radians})
    window, solver = bench.window, bench.window.left.solver
    assert not solver.run.isEnabled()
    assert "radians" in solver.why.text()
    assert solver.anyway.isVisible()
    retype(line(window.left.ct.form, "views"), "50")
    assert not solver.anyway.isVisible(), "a wrong field cannot be overruled"
    retype(line(window.left.ct.form, "views"), "")
    bench.fill(method="cg", iterations=2)
    click(solver.anyway)
    bench.wait_idle()
    made = bench.runs()[-1]
    assert made.status == "done"
    assert made.job["ignore_checks"]
    bench.open(sinogram_file(bench.folder), {"kind": "sinogram", **RAYS})
    assert solver.run.isEnabled()
    assert not solver.anyway.isVisible()


def test_more_views_than_were_measured_are_refused_in_words_and_run_says_why(bench):
    bench.open(sinogram_file(bench.folder), {"kind": "sinogram", **RAYS})
    window = bench.window
    assert window.left.solver.run.isEnabled()
    retype(line(window.left.ct.form, "views"), "50")
    said = window.left.ct.form.rows["views"].sentence.text()
    assert "36" in said
    assert "50" in said
    assert not window.left.solver.run.isEnabled()
    assert window.left.solver.run.toolTip() == window.left.solver.why.text()
    assert "36" in window.left.solver.why.text()
    click(window.left.solver.run)
    window.menus.actions["run"].trigger()
    assert window.runs.state == "idle"
    retype(line(window.left.ct.form, "views"), "18")
    assert window.left.solver.run.isEnabled()


def test_the_mask_of_mri_is_drawn_with_its_true_acceleration(mr):
    panel = mr.window.left.mri
    before = panel.picture.grab().toImage()
    retype(line(panel.form, "acceleration"), "4")
    sampled, words = panel._mask(panel.value())
    assert f"True acceleration {64 / sampled.sum():.2f} (asked for 4)" in panel.words.text()
    assert panel.words.text() == words
    assert panel.picture.grab().toImage() != before


# -- solver ---------------------------------------------------------------------------------


@pytest.mark.parametrize("modality", ["ct", "mr"])
def test_every_method_of_the_list_makes_a_job_that_the_engine_takes(request, modality):
    bench = request.getfixturevalue(modality)
    solver, asked = bench.window.left.solver, []
    box = solver.method_box
    names = [box.itemText(row) for row in range(box.count())]
    assert len(names) >= 4
    for name in names:
        choose(box, name)
        assert solver.run.isEnabled(), solver.problem()
        asked.append(solver.value())
    assert [job["solver"] for job in asked] == [box.itemData(row) for row in range(box.count())]
    for job in asked:
        Job.from_dict({**job, "input": "demo:ct", "acquisition": {}})


@pytest.mark.parametrize(
    ("modality", "preset", "scan"),
    [
        ("ct", "LACT-90", {"views": 90, "angular_range": 90.0}),
        ("mr", "MRI 10x", {"acceleration": 10.0}),
    ],
)
def test_a_preset_fills_all_fields_and_one_undo_takes_it_back(request, modality, preset, scan):
    bench = request.getfixturevalue(modality)
    window = bench.window
    left = window.left
    left.solver.history.reset("nfe", "cg_iterations")
    before = (left.solver.value(), left.acquisition().value())
    choose(left.solver.presets.combo, preset)
    assert all(window.history[name] == value for name, value in scan.items())
    filled = (left.solver.value(), left.acquisition().value())
    assert filled != before
    press(window, Qt.Key.Key_Z, CTRL)
    assert (left.solver.value(), left.acquisition().value()) == before
    press(window, Qt.Key.Key_Y, CTRL)
    assert (left.solver.value(), left.acquisition().value()) == filled


def test_wrong_text_blocks_run_and_says_why(ct):
    solver = ct.window.left.solver
    choose(solver.method_box, "DC-PnPDP")
    retype(line(solver.form, "nfe"), "many")
    assert not solver.run.isEnabled()
    assert not solver.both.isEnabled()
    assert solver.why.text() == solver.form.problem()
    assert solver.form.rows["nfe"].sentence.text()
    retype(line(solver.form, "nfe"), "8")
    assert solver.run.isEnabled()
    assert not solver.why.text()


def test_editing_starts_no_run(ct):
    window = ct.window
    runs = len(window.store)
    retype(line(window.left.solver.form, "nfe"), "7")
    retype(line(window.left.ct.form, "views"), "13")
    choose(window.left.solver.method_box, "DiffPIR")
    pause(600)
    assert len(window.store) == runs
    assert window.runs.state == "idle"


def test_ctrl_z_and_ctrl_y_step_through_the_edits(ct):
    window = ct.window
    field = line(window.left.solver.form, "nfe")
    choose(window.left.solver.method_box, "DC-PnPDP")
    field = line(window.left.solver.form, "nfe")
    retype(field, "21")
    press(window, Qt.Key.Key_Tab)
    retype(line(window.left.ct.form, "views"), "33")
    for widget in (window, line(window.left.ct.form, "views")):  # in a field and outside
        press(widget, Qt.Key.Key_Z, CTRL)
        assert window.history["views"] != 33
        press(widget, Qt.Key.Key_Z, CTRL)
        assert window.history["nfe"] != 21
        press(widget, Qt.Key.Key_Y, CTRL)
        press(widget, Qt.Key.Key_Y, CTRL)
        assert window.history["nfe"] == 21
        assert window.history["views"] == 33


def test_a_preset_of_ones_own_is_listed_after_a_restart(benches):
    bench = benches()
    presets = bench.window.left.solver.presets
    retype(line(bench.window.left.solver.form, "nfe"), "17")
    click(presets.save)
    QTest.keyClicks(presets.name, "Tuesday")
    QTest.keyClick(presets.name, Qt.Key.Key_Return)
    assert presets.combo.currentText() == "Tuesday"
    bench.close()
    again = benches()
    solver = again.window.left.solver
    assert solver.history["nfe"] != 17
    choose(solver.presets.combo, "Tuesday")
    assert solver.history["nfe"] == 17
    assert json.dumps(solver.value()["settings"]) == '{"nfe": 17}'
