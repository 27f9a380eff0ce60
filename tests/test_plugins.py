"""Solvers, priors and readers of other packages are found by name and break nothing."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dualscope as ds
from engine.cli import main

CODE = """
import numpy as np, torch
from dataclasses import dataclass
import dualscope as ds

@dataclass(frozen=True)
class Steps(ds.Settings):
    steps: int = ds.setting(3, "How many steps.", low=1)
    strength: float = ds.setting(1.0, "Their length.", above=0)

class Landweber(ds.Solver):
    name, label, settings_class, needs_prior = "landweber", "Landweber", Steps, False
    def iterate(self, problem, prior, settings, generator, resume=None):
        a, x = problem.operator, problem.operator.pseudo_inverse(problem.measurement)
        for k in range(settings.steps):
            x = x - settings.strength / a.norm() ** 2 * a.adjoint(problem.residual(x))
            norm, zero = problem.residual(x).flatten(1).norm(dim=1), torch.zeros(len(x))
            yield ds.Iteration(k + 1, settings.steps, 0.0, x, x, x, norm, norm, zero, zero, {})

def halved():
    return ds.load_prior(lambda x, sigma: x / (1 + sigma**2), scale=1000)

def read(path, options):
    return np.loadtxt(path)
"""
POINTS = """
[dualscope.solvers]
landweber = added_package:Landweber
absent = added_package:Absent
broken = broken_package:Anything
[dualscope.priors]
ct-halved = added_package:halved
mr-broken = broken_package:prior
[dualscope.readers]
txt2 = added_package:read
bad = broken_package:read
"""


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A folder on the path with an installed package of plug-ins, one of which is broken."""
    folder = tmp_path / "site"
    about = folder / "added-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    (folder / "added_package.py").write_text(CODE)
    (folder / "broken_package.py").write_text("raise RuntimeError('no such GPU')")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in ("added_package", "broken_package"):
        sys.modules.pop(name, None)


@pytest.fixture
def problem():
    return ds.simulate("demo:ct", views=12, size=64)


def test_a_registered_solver_runs_by_its_name_with_its_own_settings(added, problem):
    history = ds.reconstruct(problem, "landweber", steps=5).history
    assert history["k"].tolist() == [1, 2, 3, 4, 5]
    assert (np.diff(history["residual_z"]) < 0).all()
    with pytest.raises(ds.DualscopeError, match="landweber takes no keyword 'step': did you mean"):
        ds.reconstruct(problem, "landweber", step=5)


def test_the_command_line_takes_a_registered_solver_and_its_options(added, capsys):
    line = ["reconstruct", "demo:ct", "--size", "64", "--views", "12", "--quiet"]
    assert main([*line, "--solver", "landweber", "--steps", "2", "-o", "x.npy"]) == 0
    same = ds.reconstruct(ds.simulate("demo:ct", views=12, size=64), "landweber", steps=2)
    assert np.array_equal(np.load("x.npy"), same.image)
    assert main([*line, "--solver=landweber", "--steps", "0", "-o", "y.npy"]) == 2
    assert "--steps must be at least 1" in capsys.readouterr().err
    assert main(["compare", *line[1:], "--solvers", "fbp,landweber:steps=1"]) == 0
    assert "landweber:steps=1" in capsys.readouterr().out


def test_a_broken_solver_is_one_sentence_and_the_others_run(added, problem, capsys):
    line = ["reconstruct", "demo:ct", "--size", "64", "-o", "x.npy", "--solver"]
    for name, reason in (("broken", "RuntimeError: no such GPU"), ("absent", "AttributeError")):
        assert main([*line, name]) == 2
        said = capsys.readouterr().err
        assert f"The plug-in '{name}' (" in said
        assert reason in said
        assert said.count("\n") == 1
    assert ds.reconstruct(problem, "fbp").status == "done"


def test_a_registered_prior_is_used_by_its_name(added, problem, capsys):
    assert ds.reconstruct(problem, prior="ct-halved", nfe=2).record.job["prior"] == "ct-halved"
    assert main(["prior", "list"]) == 0
    out = capsys.readouterr().out
    assert "CT  ct-halved" in out
    assert "mr-broken" in out  # with what is wrong
    assert "no such GPU" in out
    assert "MR  mr-base" in out
    with pytest.raises(ds.DualscopeError, match=r"'mr-broken' .* is broken: RuntimeError"):
        ds.load_prior("mr-broken", "mr")


def test_a_registered_reader_opens_its_files(added):
    image = np.linspace(-1000, 1000, 64 * 64).reshape(64, 64)
    np.savetxt("slice.txt2", image)
    data = ds.open("slice.txt2", unit="hu")
    assert np.allclose(data.preview(), image, atol=0.01)
    Path("slice.bad").write_text("")
    with pytest.raises(ds.DualscopeError, match=r"'bad' .* is broken"):
        ds.open("slice.bad")


def test_the_window_offers_what_is_registered_and_names_what_is_broken(added):
    from app.forms.choices import load_choices

    with pytest.warns(UserWarning, match="no such GPU"):
        choices = load_choices()
    assert "landweber" in [method.name for method in choices.methods]
    assert "ct-halved" in choices.priors["CT"]
    assert "ct-halved" not in choices.priors["MR"]
    assert {"dc-pnpdp", "tv"} <= {method.name for method in choices.methods}


def test_the_window_s_form_asks_for_the_settings_of_a_registered_solver(added, qtbot, tmp_path):
    from app.forms.choices import load_choices
    from app.forms.solver_panel import SolverPanel
    from engine.files.presets import PresetStore

    (added / "added-1.0.dist-info" / "entry_points.txt").write_text(
        "[dualscope.solvers]\nlandweber = added_package:Landweber\n"
    )
    panel = SolverPanel(store=PresetStore(tmp_path), acquisition=dict)
    qtbot.addWidget(panel)
    panel.set_choices(load_choices())
    panel.history.set("method", "landweber")
    assert {"steps", "strength"} <= set(panel.form.rows)
    panel.history.set("steps", 7)
    value = panel.model.value()
    assert (value["solver"], value["settings"]) == ("landweber", {"steps": 7})


def test_nothing_of_a_plug_in_is_loaded_before_it_is_named(added, problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.reconstruct(problem, nfe=1)
        main(["reconstruct", "demo:ct", "--size", "64", "--nfe", "1", "--quiet", "-o", "x.npy"])
    assert "added_package" not in sys.modules
    assert "broken_package" not in sys.modules


def test_no_name_of_ours_can_be_taken(added, problem):
    points = added / "added-1.0.dist-info" / "entry_points.txt"
    points.write_text("[dualscope.solvers]\nfbp = broken_package:Anything\n")
    assert ds.reconstruct(problem, "fbp").status == "done"
