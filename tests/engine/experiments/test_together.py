"""Slices that one run makes give the rows that each would give alone."""

import pytest
from experiment_files import all_rows, body

import engine.workflows.experiments.measure as measure
from engine.workflows.experiments.runner import Runner


def kept(name, *folders):
    """The rows of an experiment in each folder, by what they are of."""
    return [
        {(r["scan"], r["method"], r["slice"]): r for r in all_rows(name, folder)}
        for folder in folders
    ]


@pytest.mark.parametrize("name", ["controlled-50", "residuals"])
def test_the_rows_are_those_of_single_slices(experiment, name):
    assert experiment(name, "--count", "2") == 0
    assert experiment(name, "--count", "2", "--together", "2", "-o", "both") == 0
    alone, both = kept(name, "out", "both")
    assert alone.keys() == both.keys()
    assert len({key[2] for key in both}) == 2
    for key, row in both.items():
        assert row["psnr"] == pytest.approx(alone[key]["psnr"], abs=0.05), key
        # twenty undamped CG steps of DDS on limited angles bring rounding up to some percent
        assert row["residual"] == pytest.approx(alone[key]["residual"], rel=0.05, abs=1e-4), key
        assert len(row["history"]) == len(alone[key]["history"])
        for mine, other in zip(row["history"], alone[key]["history"], strict=True):
            assert mine["psnr"] == pytest.approx(other["psnr"], abs=0.05)
            assert mine["gap"] == pytest.approx(other["gap"], rel=0.1, abs=1e-4), key
        assert row["job"] == alone[key]["job"]  # a case can be run again alone
    assert body(name, "both")["complete"] is True


def test_one_run_serves_all_slices_of_an_input(experiment, monkeypatch):
    sizes, original = [], measure.make_run

    def counted(prepared, **options):
        sizes.append(len(prepared.problem.measurement))
        return original(prepared, **options)

    monkeypatch.setattr(measure, "make_run", counted)
    assert experiment("ablation", "--count", "2", "--together", "8") == 0
    assert sizes == [2, 2, 2, 2]


def test_when_a_run_of_several_fails_each_slice_is_run_alone(experiment, monkeypatch):
    monkeypatch.setattr("engine.workflows.experiments.runner.several_runs", lambda *args: [])
    assert experiment("ablation", "--count", "2", "--together", "2") == 0
    assert [row["status"] for row in all_rows("ablation")] == ["done"] * 8


def test_what_is_done_is_not_done_again(experiment, monkeypatch):
    assert experiment("ablation", "--count", "2", "--together", "2") == 0
    monkeypatch.setattr(Runner, "_together", None)
    assert experiment("ablation", "--count", "2", "--together", "2") == 0


def test_no_slices_at_once_are_refused(experiment, capsys):
    assert experiment("ablation", "--together", "0") == 2
    assert "--together" in capsys.readouterr().err
