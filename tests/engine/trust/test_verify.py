"""A record is enough to make its run again, and a difference is never passed over."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from recorded_runs import save_disc

from engine.cli import main
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.runs.run import image_sha256


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_disc(Path("disc.npy"))
    options = ["--unit", "hu", "--views", "9", "--nfe", "3", "--prior", "gaussian", "--quiet"]
    assert main(["reconstruct", "disc.npy", *options, "--record", "r.json"]) == 0
    return Path("r.json")


def change(record, **entries):
    body = json.loads(record.read_text())
    body |= entries
    record.write_text(json.dumps({k: v for k, v in body.items() if v is not None}))


def verify(capsys, *options):
    code = main(["verify", "r.json", "--quiet", *options])
    out, err = capsys.readouterr()
    return code, out + err


def test_the_bits_match(record, capsys):
    kept = RunRecord.read(record)
    image = Checkpoint.read(Checkpoint.path_beside(record)).image
    assert kept.result_sha256 == image_sha256(image)
    assert kept.threads == torch.get_num_threads()
    assert verify(capsys) == (0, "The bits match.\n")


def test_another_number_of_threads_is_undone(record, capsys):
    change(record, threads=torch.get_num_threads())
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        assert verify(capsys) == (0, "The bits match.\n")
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_an_image_that_differs_is_measured(record, capsys):
    path = Checkpoint.path_beside(record)
    stored = Checkpoint.read(path)
    stored.image[0, 0, 3, 4] += 0.05  # 50 HU
    stored.write(path)
    change(record, result_sha256=image_sha256(stored.image))
    code, said = verify(capsys)
    assert code == 1
    assert said.startswith("Differs by at most 50 HU (RMS 1.04 HU).")


def test_without_its_image_the_hash_still_tells(record, capsys):
    Checkpoint.path_beside(record).unlink()
    assert verify(capsys)[0] == 0
    change(record, result_sha256="0" * 64)
    code, said = verify(capsys)
    assert code == 1
    assert "bits differ" in said
    assert "differ by up to 0, relative" in said


def test_an_older_record_is_compared_by_image_or_by_history(record, capsys):
    change(record, result_sha256=None, threads=None)
    assert verify(capsys) == (0, "The bits match.\n")
    Checkpoint.path_beside(record).unlink()
    code, said = verify(capsys)
    assert (code, said.startswith("The history matches to the last digit")) == (0, True)
    history = json.loads(record.read_text())["history"]
    history[1]["gap"] *= 1.01
    change(record, history=history)
    code, said = verify(capsys)
    assert code == 1
    assert "0.0099, relative" in said


def test_other_versions_are_named_and_the_comparison_made(record, capsys):
    change(record, versions=RunRecord.read(record).versions | {"torch": "1.0"})
    code, said = verify(capsys)
    assert code == 0
    assert "The bits match." in said
    assert "torch 1.0 then" in said


def test_another_device_passes_within_a_tolerance(record, capsys):
    path = Checkpoint.path_beside(record)
    stored = Checkpoint.read(path)
    for off, expected in ((5e-4, 0), (0.05, 1)):
        stored.image[0, 0, 3, 4] += off
        stored.write(path)
        change(record, device="cuda:0", result_sha256=image_sha256(stored.image))
        code, said = verify(capsys)
        assert code == expected
        assert "Recorded on cuda:0, made again on cpu" in said


def test_changed_data_a_missing_and_another_prior_are_refused(record, capsys):
    change(record, prior={**(RunRecord.read(record).prior or {}), "sha256": "0" * 64})
    assert "not the one this run was made with" in refused(capsys)
    change(record, job=RunRecord.read(record).job | {"prior": "gone.safetensors"})
    assert "gone.safetensors" in refused(capsys)
    change(record, job=RunRecord.read(record).job | {"prior": "gaussian"})
    np.save("disc.npy", np.zeros((48, 48)))
    assert "sha256 differs" in refused(capsys)


def refused(capsys):
    code, said = verify(capsys)
    assert code == 2
    assert said.count("\n") == 1
    return said


def test_a_record_without_a_result_and_one_without_names_say_so(record, capsys):
    job = RunRecord.read(record).job
    change(record, job=job | {"input": "(removed)"})
    assert "--input" in refused(capsys)
    assert verify(capsys, "--input", "disc.npy")[0] == 0
    change(record, history=[])
    assert "holds no result" in refused(capsys)


@pytest.mark.parametrize(
    ("solver", "added"),
    [
        ("tv", ("tv_method", "tolerance")),
        ("cg", ("stop_at_noise",)),
        ("sirt", ("stop_at_noise",)),
    ],
)
def test_a_record_older_than_a_setting_is_made_again_as_it_was(
    tmp_path, monkeypatch, capsys, solver, added
):
    """What was recorded before methods knew the noise: all settings but those added since."""
    monkeypatch.chdir(tmp_path)
    save_disc(Path("disc.npy"))
    options = ["--unit", "hu", "--views", "9", "--photons", "1e3", "--iterations", "30", "--quiet"]
    options += {"tv": ["--tv-method", "fista"]}.get(solver, ["--stop-at-noise", "off"])
    options += ["--solver", solver]
    assert main(["reconstruct", "disc.npy", *options, "--record", "r.json"]) == 0
    body = json.loads(Path("r.json").read_text())
    for name in added:
        del body["job"]["settings"][name]
    assert len(body["history"]) == 30
    Path("r.json").write_text(json.dumps(body))
    assert verify(capsys) == (0, "The bits match.\n")


def test_a_run_that_ends_at_the_noise_says_so_and_is_made_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_disc(Path("disc.npy"))
    options = ["--unit", "hu", "--views", "9", "--photons", "1e3", "--solver", "cg", "--quiet"]
    assert main(["reconstruct", "disc.npy", *options, "--record", "r.json"]) == 0
    kept = RunRecord.read(Path("r.json"))
    assert "that of the noise" in kept.verdicts["convergence"]
    assert len(kept.history) < 100
    assert verify(capsys) == (0, "The bits match.\n")
    assert main(["reconstruct", "--resume", "r.json", "--quiet", "-o", "o.npy"]) == 0
    assert RunRecord.read(Path("r.json")).verdicts == kept.verdicts
