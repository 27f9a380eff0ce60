"""An experiment survives a kill without computing anything twice, and refuses a mixture."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from experiment_files import all_rows, body
from helpers import signalled

import engine.workflows.experiments.measure as measure
from engine.workflows.experiments.runner import Runner


@pytest.fixture
def solver_calls(monkeypatch):
    """The methods that were really run, in order."""
    calls, original = [], measure.make_run

    def counted(prepared, **options):
        calls.append((prepared.job.solver, prepared.problem.slices, prepared.settings))
        return original(prepared, **options)

    monkeypatch.setattr(measure, "make_run", counted)
    return calls


class Killed(BaseException):
    """Stands for a signal that cannot be caught."""


def test_a_killed_experiment_resumes_without_recomputing(experiment, solver_calls, monkeypatch):
    original = Runner._named
    saved = []

    def die_after_two(self, case, row):
        if len(saved) == 2:
            raise Killed
        saved.append(case.label)
        return original(self, case, row)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_named", die_after_two)
        with pytest.raises(Killed):
            experiment("ablation")
    assert len(solver_calls) == 3
    before = body("ablation")["cases"]
    assert len(before) == 2
    solver_calls.clear()
    assert experiment("ablation") == 0
    assert len(solver_calls) == 2  # the third, which was lost, and the fourth
    after = body("ablation")["cases"]
    assert {key: after[key] for key in before} == before
    solver_calls.clear()
    assert experiment("ablation") == 0
    assert solver_calls == []
    assert body("ablation")["complete"] is True


@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
def test_ctrl_c_keeps_what_is_done_and_exits_130():
    np.save("one.npy", np.load("ct.npy")[:1])
    command = ["experiment", "residuals", "one.npy", "--unit", "hu", "--prior", "tv", "-o", "out"]
    command += ["--nfe", "4", "--cg-iterations", "3"]
    code, err = signalled(signal.SIGINT, Path("out/residuals.json"), *command)
    assert code == 130, err
    result = body("residuals")
    assert result["complete"] is False
    assert 1 <= len(result["cases"]) < 4
    assert {row["status"] for row in all_rows("residuals")} == {"done"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (["--seed", "1"], "seed"),
        (["--cg-iterations", "4"], "cg_iterations"),
        (["--count", "2"], "count"),
        (["--prior", "gaussian"], "tv"),
    ],
    ids=" ".join,
)
def test_other_settings_are_refused(change, word, experiment, capsys):
    assert experiment("sh-in-ddnm", "--nfe", "1") == 0
    before = Path("out/sh-in-ddnm.json").read_bytes()
    capsys.readouterr()
    assert experiment("sh-in-ddnm", "--nfe", "1", *change) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "other settings" in message
    assert word in message
    assert Path("out/sh-in-ddnm.json").read_bytes() == before
    assert experiment("sh-in-ddnm", "--nfe", "1", *change, "--overwrite") == 0


def test_a_changed_input_is_refused(experiment, capsys):
    assert experiment("sh-in-ddnm", "--nfe", "1") == 0
    np.save("ct.npy", 0.5 * np.load("ct.npy"))
    assert experiment("sh-in-ddnm", "--nfe", "1") == 2
    assert "ct.npy" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "dualscope-run"}'])
def test_a_foreign_file_in_the_way_is_kept(content, experiment, capsys):
    Path("out").mkdir()
    Path("out/ablation.json").write_text(content)
    assert experiment("ablation") == 2
    assert "ablation.json" in capsys.readouterr().err
    assert Path("out/ablation.json").read_text() == content
