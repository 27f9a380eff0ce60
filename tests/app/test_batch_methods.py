"""Every method of the engine can be chosen, set, run and compared in the window."""

import dataclasses

import pytest
from window_driver import HU, choose, click, phantom, save_phantom, until

from app.forms.choices import load_choices
from app.forms.solver_panel import SolverPanel
from app.images.grid import CompareMode
from app.theme import RUN_STYLES
from engine.files.presets import BUILT_IN
from engine.solvers.catalogue import SOLVERS
from engine.solvers.presets import BUDGETS
from engine.workflows.experiments.catalogue import LABELS

# a network trained for one scan is run where there is one: tests/engine/solvers
CT = [name for name, s in SOLVERS.items() if "CT" in s.modalities and name != "supervised"]
SMALL = {
    **{"prior": "tv", "nfe": 6, "cg_iterations": 2, "iterations": 3},
    **{"inner_steps": 2, "langevin_steps": 3, "pinv_iterations": 3, "tv_inner": 3},
}


@pytest.fixture(scope="module")
def choices():
    return load_choices()


@pytest.fixture
def panel(qtbot, folders, choices):
    panel = SolverPanel()
    qtbot.addWidget(panel)
    panel.set_choices(choices)
    panel.set_blocked("")
    return panel


def preset(panel, name):
    return next(one for one in panel.presets.presets if one.engine_preset == name)


def test_every_method_has_a_style_and_one_name(choices):
    assert set(SOLVERS) <= set(RUN_STYLES)
    assert {name: SOLVERS[name].label for name in LABELS} == LABELS


@pytest.mark.parametrize("name", SOLVERS)
def test_every_method_shows_its_settings_with_what_they_do(panel, name):
    panel.set_modality(SOLVERS[name].modalities[0])
    choose(panel.method_box, SOLVERS[name].label)
    fields = dataclasses.fields(SOLVERS[name].settings_class)
    assert set(panel.form.rows) == {field.name for field in fields}
    for field in fields:
        row = panel.form.rows[field.name]
        assert field.metadata["help"] in row.toolTip() or row.reason, field.name
    assert panel.run.isEnabled()
    assert panel.both.isEnabled()


def test_every_method_runs_under_the_engines_name_and_any_two_are_compared(bench):
    window = bench.window
    bench.open(save_phantom(bench.folder), HU)
    for name in CT:
        bench.fill(method=name, **SMALL)
        click(window.left.solver.run)
        assert bench.runs()[-1].label == SOLVERS[name].label, "before it has started"
        bench.wait_idle()
        assert bench.runs()[-1].status == "done", bench.runs()[-1].message
        assert bench.runs()[-1].label == SOLVERS[name].label
    runs = {run.solver: run for run in bench.runs()}
    assert set(runs) == set(CT)
    assert len({(run.colour, tuple(run.dash)) for run in runs.values()}) == len(CT)
    for first, second in (("sitcom", "daps"), ("wavelet", "tv"), ("cg", "sirt")):
        window.grid.set_compare(CompareMode.DIFFERENCE)
        choose(window.center.bar.a, runs[first].name)
        choose(window.center.bar.b, runs[second].name)
        pane = window.grid.compare_pane
        until(lambda p=pane: p.image is not None, what="the difference")
        assert pane.name == f"{runs[first].name} − {runs[second].name}"
        expected = runs[first].images[0] - runs[second].images[0]
        assert abs(pane.image - expected).max() < 1e-3
    window.grid.set_compare(CompareMode.NONE)
    assert runs["sitcom"].images[0].shape == phantom().shape


@pytest.mark.parametrize("budget", BUDGETS)
def test_budgets_fit_the_chosen_method_and_leave_the_rest(panel, budget):
    wanted = []
    panel.acquisition_wanted.connect(wanted.append)
    panel.history.set("sigma_max", 1.5)
    asked = {name: s.budgets[budget] for name, s in SOLVERS.items() if s.budgets}
    assert len(asked) == 6
    for method, values in asked.items():
        choose(panel.method_box, SOLVERS[method].label)
        panel.apply_preset(preset(panel, budget))
        shown = {name: panel.history[name] for name in values}
        assert shown == values, method
        assert panel.form.valid
    assert panel.history["sigma_max"] == 1.5
    assert wanted == [], "a budget is no scan"
    choose(panel.method_box, "FBP")
    panel.apply_preset(preset(panel, budget))
    assert "call a denoiser" in panel.presets.sentence.text()


def test_both_modalities_are_offered_the_budgets():
    for modality in ("CT", "MR"):
        offered = {one.engine_preset for one in BUILT_IN if one.modality == modality}
        assert set(BUDGETS) < offered
