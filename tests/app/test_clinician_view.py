"""The left column in plain words: few choices, the same values, nothing lost on the way."""

import pytest
from window_driver import HU, click, save_phantom, until

from app.forms.plain import OWN


@pytest.fixture
def ct(bench):
    window = bench.window
    if window.setup.data is None:
        bench.open(save_phantom(bench.folder, slices=3), HU)
    click(window.left.mode.clinician)
    yield bench
    window.left.set_expert(True)
    window.history.reset(*window.left.solver.model.setting_names(), "method", "prior")
    window.left.ct.set_values({})
    bench.wait_quiet()


def shown(form):
    return {name for name, row in form.rows.items() if row.isVisible()}


def test_a_clinician_sees_data_dose_method_and_run(ct):
    left = ct.window.left
    assert shown(left.ct.form) == {"views", "angular_range", "photons"}
    assert left.solver.plain.isVisible()
    assert left.solver.run.isVisible()
    assert left.solver.more.isVisible()
    for part in (left.solver.expert, left.solver.both, left.slices, left.ct.form.more):
        assert not part.isVisible()


def test_switching_there_and_back_changes_no_value(ct):
    window, left = ct.window, ct.window.left
    left.set_expert(True)
    ct.fill(method="diffpir", nfe=33, seed=7)
    left.ct.set_values({"views": 31, "start_angle": 12.0})
    before = (left.solver.value(), left.ct.value())
    click(left.mode.clinician)
    assert left.solver.plain.own.isChecked()
    assert left.solver.plain.own.text() == OWN
    assert (left.solver.value(), left.ct.value()) == before
    click(left.mode.expert)
    assert (left.solver.value(), left.ct.value()) == before
    assert "start_angle" in shown(left.ct.form)
    until(left.solver.form.isVisible, what="the form")
    window.history.reset("seed")


@pytest.mark.parametrize(
    ("line", "solver", "settings"),
    [
        ("Recommended", "dc-pnpdp", {}),
        ("Quick look", "dc-pnpdp", {"nfe": 15}),
        ("Careful", "dc-pnpdp", {"nfe": 100}),
        ("Without a learnt prior", "tv", {}),
        ("Direct", "fbp", {}),
    ],
)
def test_a_line_is_a_method_with_its_settings_and_can_be_undone(ct, line, solver, settings):
    left = ct.window.left
    ct.fill(method="diffpir", nfe=33)
    click(left.solver.plain.radios[line])
    asked = left.solver.value()
    assert (asked["solver"], asked["settings"]) == (solver, settings)
    assert left.solver.plain.chosen().name == line
    ct.window.context.undo.undo()
    assert left.solver.value()["solver"] == "diffpir"
    assert left.solver.plain.own.isChecked()


def test_a_clinician_runs_and_then_knows_how_long_each_line_takes(ct):
    window, left = ct.window, ct.window.left
    window.settings.set("paces", {})
    left.solver.plain.refresh()
    assert not any(label.text() for label in left.solver.plain.times.values())
    click(left.solver.plain.radios["Quick look"])
    click(left.solver.run)
    ct.wait_idle()
    entry = ct.runs()[-1]
    assert (entry.status, entry.nfe) == ("done", 15)
    until(lambda: left.solver.plain.times["Careful"].text().startswith("about"), what="the time")
    assert left.solver.plain.times["Direct"].text().startswith("about"), "it ran along"


def test_the_view_is_remembered(ct):
    window = ct.window
    assert window.settings.get("expert") is False
    assert not window.menus.actions["expert"].isChecked()
    window.menus.actions["expert"].trigger()
    assert window.settings.get("expert") is True
    assert window.left.mode.expert.isChecked()
    until(window.left.solver.form.isVisible, what="the form")


def test_all_slices_of_the_expert_do_not_surprise_the_clinician(ct):
    left = ct.window.left
    left.set_expert(True)
    left.slices.box.setCurrentIndex(left.slices.box.findData("all"))
    assert left.slices.value() == "0:3"
    left.set_expert(False)
    assert left.slices.value() == str(ct.window.panes.slice)
    left.set_expert(True)
    assert left.slices.value() == "0:3"
    left.slices.box.setCurrentIndex(0)
