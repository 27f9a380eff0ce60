"""The solver panel asks for everything a run needs and starts none by itself."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PySide6.QtCore import Qt

from app.forms.choices import load_choices, preset_values
from app.forms.solver_model import BOTH
from app.forms.solver_panel import SolverPanel
from engine.files.presets import BUILT_IN, Preset, PresetStore
from engine.physics.simulate import Slices, simulate
from engine.physics.units import IntensityMap
from engine.solvers.catalogue import SOLVERS
from engine.solvers.presets import PAPER_RHO, apply_preset
from engine.spec.acquisition import CTAcquisition
from engine.spec.job import Job

ROOT = Path(__file__).resolve().parents[2]
CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def panel(qtbot, tmp_path):
    widget = SolverPanel(store=PresetStore(tmp_path), acquisition=lambda: {"views": 33})
    qtbot.addWidget(widget)
    widget.set_choices(load_choices())
    widget.set_blocked("")
    widget.resize(320, 700)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def line(panel, name):
    return panel.form.rows[name].editor.control


def retype(qtbot, control, text):
    control.setFocus()
    control.selectAll()
    qtbot.keyClick(control, Qt.Key.Key_Delete)
    qtbot.keyClicks(control, text)


def choose(box, data):
    box.setCurrentIndex(box.findData(data))
    box.activated.emit(box.currentIndex())


def preset(name):
    return next(one for one in BUILT_IN if one.name.startswith(name))


def test_the_forms_open_without_loading_the_engine():
    code = (
        "import sys, app.forms.solver_panel, app.forms.ct_panel, app.forms.mri_panel,"
        "app.forms.geometry_dialog; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_until_the_engine_is_there_nothing_can_run(qtbot, tmp_path):
    panel = SolverPanel(store=PresetStore(tmp_path))
    qtbot.addWidget(panel)
    panel.set_blocked("")
    assert not panel.run.isEnabled()
    assert panel.run.toolTip() == "The methods are still loading."
    assert not panel.presets.combo.isEnabled()
    assert panel.presets.combo.toolTip() == "The methods are still loading."


def test_run_gives_a_complete_job(qtbot, panel):
    retype(qtbot, line(panel, "nfe"), "20")
    retype(qtbot, panel.run_form.rows["seed"].editor.control, "7")
    with qtbot.waitSignal(panel.run_requested) as asked:
        qtbot.mouseClick(panel.run, Qt.MouseButton.LeftButton)
    job = Job.from_dict({"input": "demo:ct", **asked.args[0]})
    assert (job.solver, job.settings, job.seed) == ("dc-pnpdp", {"nfe": 20}, 7)
    assert (job.prior, job.device) == ("auto", "auto")


def test_both_methods_run_with_the_same_shared_settings(qtbot, panel):
    panel.history.set_many({"nfe": 20, "injection": "awgn", "zeta": 0.5, "sigma_max": 1.0})
    with qtbot.waitSignal(panel.run_both_requested) as asked:
        qtbot.mouseClick(panel.both, Qt.MouseButton.LeftButton)
    first, second = asked.args[0]
    assert (first["solver"], second["solver"]) == BOTH
    assert first["settings"] == {"nfe": 20, "injection": "awgn", "sigma_max": 1.0}
    assert second["settings"] == {"nfe": 20, "zeta": 0.5, "sigma_max": 1.0}
    for job in (first, second):
        SOLVERS[job["solver"]].settings_class.from_dict(job["settings"])


def test_no_edit_starts_a_run(qtbot, panel):
    runs = []
    panel.run_requested.connect(runs.append)
    panel.run_both_requested.connect(runs.append)
    retype(qtbot, line(panel, "nfe"), "20")
    qtbot.keyClick(line(panel, "nfe"), Qt.Key.Key_Return)
    choose(panel.method_box, "diffpir")
    panel.apply_preset(preset("LACT"))
    assert runs == []


def test_a_wrong_value_disables_run_and_says_why(qtbot, panel):
    retype(qtbot, line(panel, "sigma_min"), "3")
    assert not panel.run.isEnabled()
    assert "must not exceed" in panel.run.toolTip()
    assert "must not exceed" in panel.form.rows["sigma_min"].sentence.text()
    retype(qtbot, line(panel, "sigma_max"), "4")
    assert panel.run.isEnabled()
    retype(qtbot, panel.run_form.rows["seed"].editor.control, "-1")
    assert "“Seed” must be at least 0" in panel.both.toolTip()


def test_running_and_missing_data_disable_run_with_the_reason(panel):
    panel.set_running(True)
    assert not panel.run.isEnabled()
    assert "A run is going on" in panel.both.toolTip()
    panel.set_running(False)
    panel.set_blocked("Open data first.")
    assert panel.run.toolTip() == panel.why.text() == "Open data first."
    panel.set_blocked("")
    assert panel.run.isEnabled()


def test_the_rho_rules_exclude_each_other_even_at_zero(qtbot, panel):
    retype(qtbot, line(panel, "rho"), "0")
    assert not line(panel, "rho_over_sigma2").isEnabled()
    assert "constant rho" in panel.form.rows["rho_over_sigma2"].toolTip()
    retype(qtbot, line(panel, "rho"), "")
    retype(qtbot, line(panel, "rho_over_sigma2"), "1e-5")
    assert not line(panel, "rho").isEnabled()
    assert panel.value()["settings"] == {"rho_over_sigma2": 1e-5}


def test_homogenization_options_need_homogenization(panel):
    panel.history.set_many({"sh_width": 9})
    assert panel.value()["settings"] == {"sh_width": 9}
    panel.history.set("injection", "awgn")
    assert not panel.form.rows["sh_width"].editor.isEnabled()
    assert panel.value()["settings"] == {"injection": "awgn"}


def test_changing_the_method_keeps_shared_values_and_can_be_undone(qtbot, panel):
    retype(qtbot, line(panel, "nfe"), "20")
    choose(panel.method_box, "diffpir")
    assert line(panel, "nfe").text() == "20"
    assert "zeta" in panel.form.rows
    choose(panel.method_box, "fbp")
    assert panel.value()["settings"] == {}
    assert not panel.prior_picker.combo.isEnabled()
    assert "without a prior" in panel.prior_picker.combo.toolTip()
    panel.history.undo()
    assert panel.method_box.currentData() == "diffpir"
    qtbot.keyClick(line(panel, "nfe"), Qt.Key.Key_Z, CTRL)
    assert panel.method_box.currentData() == "dc-pnpdp"
    assert line(panel, "nfe").text() == "20"


def test_each_modality_offers_its_own_methods_and_priors(panel):
    def methods():
        return {panel.method_box.itemData(i) for i in range(panel.method_box.count())}

    assert methods() == {n for n, s in SOLVERS.items() if "CT" in s.modalities}
    choose(panel.method_box, "sirt")
    panel.history.set("prior", "ct-small")
    panel.set_modality("MR")
    assert methods() == {n for n, s in SOLVERS.items() if "MR" in s.modalities}
    assert panel.value()["solver"] == panel.method_box.currentData() == "dc-pnpdp"
    assert panel.value()["prior"] == "auto"


def test_every_method_has_a_form(panel):
    classical = ("fbp", "sirt", "cg", "tv", "wavelet")
    for name in ("dc-pnpdp", "diffpir", "ddnm", "dds", "daps", *classical):
        choose(panel.method_box, name)
        fields = {field.name for field in dataclasses.fields(SOLVERS[name].settings_class)}
        assert set(panel.form.rows) == fields
        assert panel.run.isEnabled()


def test_ddnm_asks_about_homogenization_only_when_it_uses_it(panel):
    choose(panel.method_box, "ddnm")
    panel.history.set("sh_width", 9)
    assert panel.value()["settings"] == {}
    panel.history.set("renoising", "sh")
    assert panel.value()["settings"] == {"renoising": "sh", "sh_width": 9}
    assert panel.form.valid


def test_the_papers_presets_fill_the_form_for_the_scan_at_hand(qtbot, panel):
    panel.set_scan(views=20, pixel_mm=2.0)
    wanted = []
    panel.acquisition_wanted.connect(wanted.append)
    panel.history.set("sh_width", 9)
    panel.apply_preset(preset("LACT"))
    assert wanted == [{"views": 90, "angular_range": 90.0}]
    values = panel.value()["settings"]
    assert values["cg_iterations"] == 100
    assert values["rho_over_sigma2"] == pytest.approx(PAPER_RHO * 2 * 90 / 3.14159265 * 4)
    assert "sh_width" not in values
    assert panel.run.isEnabled()
    panel.apply_preset(preset("SVCT"))
    only = {"cg_iterations": 20, "sigma_min": 0.002}
    assert panel.value()["settings"] == only, "all else is as by default"
    panel.apply_preset(preset("Published"))
    assert panel.value()["settings"]["rho"] == 0.0
    panel.history.undo()
    panel.history.undo()
    assert panel.value()["settings"]["cg_iterations"] == 100


def test_preset_values_are_the_engines_for_the_same_scan(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALSCOPE_CACHE", str(tmp_path))
    image = Slices(torch.zeros(1, 1, 32, 32), "CT", 1.5)
    problem = simulate(image, CTAcquisition(views=12), IntensityMap("hu", 1000.0))
    for name in ("paper-svct", "paper-lact", "paper-code"):
        assert preset_values(name, "CT", 12, 1.5) == apply_preset(name, problem)


def test_every_built_in_preset_makes_valid_settings(panel):
    for modality in ("CT", "MR"):
        panel.set_modality(modality)
        for one in panel.presets.presets:
            panel.apply_preset(one)
            assert panel.form.valid, one.name


def test_a_saved_preset_brings_method_settings_and_acquisition_back(qtbot, panel):
    choose(panel.method_box, "diffpir")
    panel.history.set_many({"nfe": 30, "zeta": 0.5})
    qtbot.mouseClick(panel.presets.save, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(panel.presets.name, "Mine")
    qtbot.keyClick(panel.presets.name, Qt.Key.Key_Return)
    panel.history.reset()
    assert panel.value()["solver"] == "dc-pnpdp"
    with qtbot.waitSignal(panel.acquisition_wanted) as wanted:
        panel.presets.combo.activated.emit(panel.presets.combo.currentIndex())
    assert wanted.args[0] == {"views": 33}
    assert panel.value()["solver"] == "diffpir"
    assert panel.value()["settings"] == {"nfe": 30, "zeta": 0.5}


def test_a_preset_from_another_version_is_taken_as_far_as_it_is_known(panel):
    panel.apply_preset(Preset("Old", "CT", "ddim", {"nfe": 30, "warp": 9}))
    assert panel.value()["settings"] == {"nfe": 30}
    assert "warp, ddim" in panel.presets.sentence.text()


def test_a_presets_wrong_value_is_marked_and_not_run(panel):
    panel.apply_preset(Preset("Odd", "CT", None, {"nfe": "many", "sh_width": 4}))
    assert not panel.run.isEnabled()
    assert set(panel.form.faults) == {"nfe", "sh_width"}


def test_the_card_opens_on_request_and_blocks_nothing(qtbot, panel):
    dialog = panel.prior_picker.show_card()
    assert "Training data" in dialog.page.toPlainText()
    assert panel.prior_picker.names[0] in dialog.windowTitle()
    dialog.close()
    panel.history.set("prior", "tv")
    dialog = panel.prior_picker.show_card()
    assert "Licence" in dialog.page.toPlainText()
    dialog.close()


def test_a_prior_from_a_file_is_kept_in_the_list(panel, tmp_path):
    path = str(tmp_path / "own.safetensors")
    panel.prior_picker.chosen.emit(path)
    assert panel.prior_picker.combo.currentText() == "own.safetensors"
    assert panel.value()["prior"] == path
    dialog = panel.prior_picker.show_card()
    assert "no card (own.md)" in dialog.page.toPlainText()
    dialog.close()
