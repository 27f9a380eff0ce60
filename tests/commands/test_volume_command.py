"""``dualscope reconstruct --volume``: goes on where it stopped, and says what it did."""

import signal
from pathlib import Path

import numpy as np
import pytest
from helpers import signalled
from volume_runs import small_stack

from engine.cli import main, volume
from engine.workflows.volume import compute
from engine.workflows.volume.folder import JOURNAL, VolumeFolder

SCAN = ["in.npy", "--unit", "hu", "--pixel-mm", "6", "--views", "8", "--device", "cpu"]
SOLVER = ["--nfe", "3", "--cg-iterations", "3", "--prior", "tv"]
COMMAND = ["reconstruct", *SCAN, *SOLVER]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """An empty folder with a small stack to work in."""
    monkeypatch.chdir(tmp_path)
    small_stack(tmp_path / "in.npy", count=12)


def refused(capsys, *arguments):
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_a_volume_is_computed_told_and_written(capsys):
    assert main([*COMMAND, "--volume", "v", "-o", "o.npy", "o.nii.gz"]) == 0
    out, _ = capsys.readouterr()
    for word in (
        "DC-PnPDP; done; 12 slices",
        "axial",
        "coronal",
        "sagittal",
        "flicker",
        "o.nii.gz",
    ):
        assert word in out
    assert np.load("o.npy").shape == (12, 64, 64)
    assert (Path("v") / "summary.json").exists()


def test_the_same_command_again_computes_nothing_and_writes_the_outputs():
    assert main([*COMMAND, "--volume", "v", "--quiet"]) == 0
    lines = (Path("v") / JOURNAL).read_text()
    assert main([*COMMAND, "--volume", "v", "-o", "o.npy", "--quiet"]) == 0
    assert (Path("v") / JOURNAL).read_text() == lines
    assert Path("o.npy").exists()


def test_coupling_flickers_less():
    flickers = []
    for name, weight in (("off", "0"), ("on", "2")):
        arguments = ["--couple-z", weight, "--volume", name, "-o", f"{name}.npy", "--quiet"]
        assert main([*COMMAND, *arguments]) == 0
        flickers.append(volume.Volume(VolumeFolder.open(Path(name))).facts()["axes"]["flicker"])
    assert flickers[1] < 0.8 * flickers[0]
    assert VolumeFolder.open(Path("on")).division[1].computed == tuple(range(6, 12))


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--volume", "v", "--record", "r.json"], "--record"),
        (["--volume", "v", "--resume", "r.json"], "--resume"),
        (["--volume", "v", "--batch", "0"], "--batch"),
        (["--volume", "v", "--threads", "many"], "--threads"),
        (["--batch", "2", "-o", "o.npy"], "--volume"),
        (["--volume", "v", "--couple-z", "1", "--slice", "0:9:2"], "neighbouring"),
        (["--volume", "v", "--couple-z", "-1"], "--couple-z"),
        (["--volume", "in.npy"], "in.npy is a file"),
        (["--volume", "no/v"], "no does not exist"),
    ],
)
def test_wrong_requests_are_refused_in_a_sentence(capsys, more, word):
    assert word in refused(capsys, *COMMAND, *more)


def test_another_request_for_the_same_folder_names_what_differs(capsys):
    assert main([*COMMAND, "--volume", "v", "--slice", "0:2", "--quiet"]) == 0
    said = refused(capsys, *COMMAND, "--volume", "v", "--slice", "0:2", "--seed", "5")
    assert "seed 5 instead of 0" in said


def test_more_slices_than_memory_holds_become_a_volume(capsys, monkeypatch):
    monkeypatch.setattr(volume, "fits", lambda *asked: False)
    assert main([*COMMAND, "-o", "o.npy", "--quiet"]) == 0
    assert "o.npy.parts" in capsys.readouterr().err
    assert VolumeFolder.open(Path("o.npy.parts")).complete
    assert main([*COMMAND, "-o", "r.npy", "--record", "r.json", "--quiet"]) == 0
    assert not Path("r.npy.parts").exists()


def test_an_error_says_what_is_kept(capsys, monkeypatch):
    real = compute.make_run

    def scarce(prepared, **options):
        if prepared.problem.slices[0] >= 4:
            raise MemoryError
        return real(prepared, **options)

    monkeypatch.setattr(compute, "make_run", scarce)
    assert main([*COMMAND, "--volume", "v", "--quiet"]) == 1
    said = capsys.readouterr().err
    assert "4 of 12 slices are kept in v: the same command goes on." in said
    assert "enough memory" in said


def test_sigterm_keeps_the_finished_slices_and_says_how_to_go_on(tmp_path):
    arguments = [*COMMAND, "--volume", "v", "--batch", "1", "-o", "o.npy"]
    code, said = signalled(signal.SIGTERM, Path("v", JOURNAL), *arguments, word="stored")
    assert code == 130
    assert "slices are kept in v: the same command goes on." in said
    stored = VolumeFolder.open(tmp_path / "v").stored
    assert 0 < len(stored) < 12
    assert not Path("o.npy").exists()
