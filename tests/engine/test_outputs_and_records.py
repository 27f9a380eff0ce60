"""What a person has is not lost: inputs are never replaced, and a record has one writer."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from dicom_files import write_series
from recorded_runs import PNP, record_run, save_disc
from safetensors.torch import load_file, save_file

from engine.cli import main
from engine.files.atomic import check_writable, in_use, write_bytes_atomic
from engine.files.checkpoint import Checkpoint
from engine.files.path_safety import check_apart
from engine.runs.prepare import resume_run
from engine.spec.control import RunControl
from engine.spec.errors import RequestError

OPTIONS = ["--unit", "hu", "--pixel-mm", "1", "--views", "6", "--solver", "fbp", "--quiet"]


@pytest.fixture
def disc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return save_disc(tmp_path / "disc.npy")


def reconstruct(capsys, *arguments):
    """The exit code and what was said."""
    code = main(["reconstruct", *map(str, arguments), *OPTIONS])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("name", ["disc.npy", "./disc.npy", "soft.npy", "hard.npy"])
def test_an_output_that_is_the_input_is_refused_even_with_overwrite(disc, capsys, name):
    (disc.parent / "soft.npy").symlink_to(disc)
    os.link(disc, disc.parent / "hard.npy")
    before = disc.read_bytes()
    code, said = reconstruct(capsys, disc, "-o", name, "--overwrite")
    assert code == 2
    assert "which this run reads" in said
    assert disc.read_bytes() == before
    assert (disc.parent / "hard.npy").read_bytes() == before


def test_a_record_may_not_take_the_place_of_the_sidecar(disc, capsys):
    sidecar = disc.with_suffix(".json")
    sidecar.write_text('{"unit": "hu"}')
    code, said = reconstruct(capsys, disc, "--record", "disc.json", "--overwrite")
    assert code == 2
    assert "disc.json is disc.json, which this run reads" in said
    assert sidecar.read_text() == '{"unit": "hu"}'


def test_a_folder_that_holds_the_inputs_is_no_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "IN"
    folder.mkdir()
    for number, path in enumerate(write_series(folder, [0.0, 2.0])):
        path.rename(folder / f"IM{number + 1:04d}.dcm")  # as our own series are called
    (tmp_path / "link").symlink_to(folder)
    before = sorted(folder.iterdir())
    for name in ("IN", "link"):
        code, said = reconstruct(capsys, "IN", "-o", name, "--overwrite")
        assert code == 2
        assert "which this run reads" in said or "is read" in said
    assert sorted(folder.iterdir()) == before


def test_a_resumed_run_does_not_replace_its_input(disc, capsys):
    code, _ = reconstruct(capsys, disc, "--record", "RUN.json")
    assert code == 0
    assert main(["reconstruct", "--resume", "RUN.json", "-o", "disc.npy"]) == 2
    assert "which this run reads" in capsys.readouterr().err


def test_a_picture_of_an_input_does_not_replace_it(tmp_path, capsys):
    from PIL import Image

    path = tmp_path / "a.png"
    Image.fromarray(np.full((32, 32), 100, np.uint8)).save(path)
    before = path.read_bytes()
    assert main(["inspect", str(path), "--modality", "mr", "--picture", str(path)]) == 2
    assert path.read_bytes() == before
    assert "which this run reads" in capsys.readouterr().err


def test_other_files_may_be_outputs(tmp_path, disc):
    copy = save_disc(tmp_path / "copy.npy")
    check_apart([copy, tmp_path / "new.npy", tmp_path / "folder"], [disc, tmp_path / "gone"])
    with pytest.raises(RequestError, match="holds"):
        check_apart([tmp_path], [disc])


# names and folders, before the run


@pytest.mark.parametrize(("length", "code"), [(249, 0), (255, 0), (256, 2), (4000, 2)])
def test_a_long_name_is_written_or_refused_before_the_run(disc, capsys, length, code, monkeypatch):
    if code:
        monkeypatch.setattr("engine.cli.reconstruct.open_dataset", lambda job: pytest.fail("run"))
    name = "n" * (length - 4) + ".npy"
    found, said = reconstruct(capsys, disc, "-o", name)
    assert found == code
    assert ("File name too long" in said) == bool(code)
    assert [path.name for path in disc.parent.iterdir() if path.name.startswith(".")] == []


def test_a_record_whose_checkpoint_would_have_too_long_a_name_is_refused_at_once(disc, capsys):
    code, said = reconstruct(capsys, disc, "--record", "r" * 240 + ".json")
    assert code == 2
    assert "File name too long" in said


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody writes into")
@pytest.mark.parametrize("name", ["/proc/self/a.npy", "a.xyz", "nowhere/a.npy"])
def test_what_cannot_be_written_is_refused_before_the_run(disc, capsys, monkeypatch, name):
    monkeypatch.setattr("engine.cli.reconstruct.open_dataset", lambda job: pytest.fail("run"))
    code, said = reconstruct(capsys, disc, "-o", name)
    assert code == 2
    assert name in said
    assert len(said.splitlines()) == 1


def test_looking_whether_a_file_can_be_written_leaves_it_alone(tmp_path):
    path = tmp_path / "a.npy"
    write_bytes_atomic(path, b"mine")
    check_writable(path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.npy"]
    assert path.read_bytes() == b"mine"


# a record and its one writer

HOLDER = """
    import sys, time
    from pathlib import Path
    from engine.files.atomic import in_use
    with in_use(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the record until it is told, or killed."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(tmp_path / "RUN.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.communicate()


def test_a_record_that_another_process_writes_is_refused(disc, capsys, holder):
    code, said = reconstruct(capsys, disc, "--record", "RUN.json")
    assert code == 2
    assert said == (
        "dualscope: RUN.json is in use by another process: wait until its run has ended, or end "
        "it.\n"
    )
    assert not (disc.parent / "RUN.json").exists()
    with pytest.raises(RequestError, match="in use by another process"):
        record_run(disc.parent / "RUN.json", input=str(disc), options={"unit": "hu"})


def test_the_lock_of_a_killed_process_is_taken_over_and_none_is_left(disc, capsys, holder):
    holder.kill()
    holder.wait()
    assert (disc.parent / ".RUN.json.lock").exists()
    assert reconstruct(capsys, disc, "--record", "RUN.json")[0] == 0
    assert not (disc.parent / ".RUN.json.lock").exists()


def test_a_process_may_use_its_own_record_twice(tmp_path):
    path = tmp_path / "RUN.json"
    with in_use(path):
        with in_use(path):
            pass
        assert (tmp_path / ".RUN.json.lock").exists()
    assert list(tmp_path.iterdir()) == []


# checkpoints


@pytest.fixture
def interrupted(disc):
    """A record whose run was stopped after its second step."""
    from engine.runs.prepare import make_run, prepare
    from engine.spec.job import Job

    path = disc.parent / "RUN.json"
    job = {"input": str(disc), "options": {"unit": "hu", "pixel_mm": 1.0}, "prior": "tv"}
    job |= {"solver": "dc-pnpdp", "settings": PNP, "acquisition": {"views": 6}, "device": "cpu"}
    control = RunControl()
    for iteration in make_run(prepare(Job.from_dict(job)), path, control, 0.0):
        if iteration.k == 2:
            control.cancel()
    return path


def resumed(path):
    _, run = resume_run(path)
    for _ in run:
        pass
    return run


@pytest.mark.parametrize("name", ["u", "z"])
def test_a_checkpoint_without_its_state_is_named_as_such(interrupted, capsys, name):
    path = Checkpoint.path_beside(interrupted)
    rewrite(path, lambda tensors: tensors.pop(f"state.{name}"))
    assert main(["reconstruct", "--resume", str(interrupted), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert f"{path} lacks 'state.{name}': it is incomplete or another run's" in said
    assert len(said.splitlines()) == 1


def test_a_checkpoint_of_another_size_is_named_as_such(interrupted):
    path = Checkpoint.path_beside(interrupted)
    rewrite(path, lambda tensors: tensors.update({"state.u": tensors["state.u"][..., :7]}))
    with pytest.raises(RequestError, match="does not fit this run: it is incomplete or another"):
        resumed(interrupted)


def test_a_checkpoint_of_another_method_is_named_as_such(interrupted, disc):
    other = disc.parent / "other.json"
    record_run(
        other,
        "ddnm",
        {"nfe": 3},
        input=str(disc),
        options={"unit": "hu", "pixel_mm": 1.0},
        acquisition={"views": 6},
    )
    content = Checkpoint.read(Checkpoint.path_beside(other))
    content.k = 2
    content.write(Checkpoint.path_beside(interrupted))
    with pytest.raises(RequestError, match="it is incomplete or another run's"):
        resumed(interrupted)


def test_a_whole_checkpoint_is_resumed(interrupted):
    assert resumed(interrupted).status == "done"


def rewrite(path, change):
    from safetensors import safe_open

    tensors = load_file(path)
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    change(tensors)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path, metadata)
