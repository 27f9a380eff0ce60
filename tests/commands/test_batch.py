"""``dualscope batch``: its options, its exit codes, its one sentence."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from folder_inputs import copy_dicom, save_slice, table_rows

from engine.cli import main
from engine.files.presets import Preset, PresetStore

OPTIONS = ["--unit", "hu", "--pixel-mm", "12", "--prior", "tv", "--settle", "0.02"]
FBP = ["batch", "in", "-o", "out", *OPTIONS, "--solver", "fbp", "--formats", "npy"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A folder with one input in it, and presets of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUALSCOPE_CONFIG", str(tmp_path / "config"))
    save_slice(Path("in/a.npy"))


def refused(capsys, *arguments):
    assert main([*FBP, *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert not Path("out").exists()
    return err


def test_a_folder_becomes_results_and_one_table(capsys):
    copy_dicom("in", "CT_small.dcm")
    assert main([*FBP[:-1], "dcm,png,nii.gz"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 done\n")
    assert "table.html" in out
    assert sorted(err.splitlines()) == ["CT_small.dcm: done", "a.npy: done"]
    for name in ("a", "CT_small"):
        for file in ("RUN.json", "result.dcm", "result.png", "result.nii.gz"):
            assert (Path("out") / name / file).is_file()
    assert main([*FBP[:-1], "dcm,png,nii.gz"]) == 0
    assert "done" not in capsys.readouterr().err, "it was done again"


def test_a_broken_input_makes_it_one_and_the_rest_is_done(capsys):
    Path("in/broken.npy").write_bytes(b"x")
    assert main([*FBP, "--quiet"]) == 1
    assert capsys.readouterr() == ("", "")
    assert {row["status"] for row in table_rows("out").values()} == {"done", "failed"}
    assert main([*FBP, "--quiet"]) == 1
    os.remove("in/broken.npy")
    assert main([*FBP, "--quiet"]) == 0, "what is not there any more cannot fail"
    save_slice(Path("in/broken.npy"))
    assert main([*FBP, "--quiet"]) == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["-o", "in"], "holds the inputs"),
        (["--formats", "docx"], "--formats"),
        (["--settle", "-1"], "--settle"),
        (["--preset", "magic"], "--preset 'magic' is not known"),
        (["--preset", "gone.json"], "Cannot read gone.json"),
        (["--preset", "in/a.npy.json"], "Cannot read"),
        (["--solver", "magic"], "magic"),
        (["--views", "0"], "--views"),
        (["--window", "wide"], "window"),
    ],
)
def test_a_wrong_request_is_one_sentence(capsys, wrong, words):
    assert words in refused(capsys, *wrong)


def test_input_and_output_have_to_be_named(capsys):
    for arguments in (["batch", "-o", "out"], ["batch", "in"], ["batch", "demo:ct", "-o", "out"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("by", ["name", "file"])
def test_a_preset_of_the_window_serves_here(by):
    PresetStore().save(Preset("Mine, few", "CT", "sirt", {"iterations": 4}, {"views": 7}))
    (path,) = PresetStore().folder.glob("*.json")
    preset = "Mine, few" if by == "name" else str(path)
    arguments = ["batch", "in", "-o", "out", *OPTIONS, "--formats", "npy", "--preset", preset]
    assert main([*arguments, "--quiet"]) == 0
    job = json.loads(Path("out/a/RUN.json").read_text())["job"]
    assert (job["solver"], job["settings"]["iterations"]) == ("sirt", 4)
    assert job["acquisition"] == {"views": 7}


def test_a_budget_of_the_engine_serves_as_everywhere():
    arguments = [*FBP, "--preset", "matched-50", "--solver", "dc-pnpdp", "--cg-iterations", "1"]
    assert main([*arguments, "--quiet"]) == 0
    assert json.loads(Path("out/a/RUN.json").read_text())["job"]["settings"]["nfe"] == 50


@pytest.mark.parametrize(("watch", "code"), [(["--watch"], 0), ([], 130)])
def test_ctrl_c_ends_it_and_ends_watching_well(watch, code):
    """Watched, when all is done; otherwise in the middle of an input."""
    slow = [] if watch else ["--solver", "dc-pnpdp", "--nfe", "100000", "--cg-iterations", "1"]

    def press():
        deadline = time.monotonic() + 120
        wanted = Path("out/a/result.npy" if watch else "out/a/RUN.checkpoint.safetensors")
        while not wanted.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        assert main([*FBP, *slow, *watch, "--quiet"]) == code
    finally:
        thread.join()
    assert table_rows("out")["a.npy"]["status"] == ("done" if watch else "stopped")
