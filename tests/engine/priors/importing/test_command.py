"""``dualscope prior import`` at the command line."""

import json

import pytest
from import_cases import tiny_snapshot

from engine.cli import main
from engine.priors.safetensors_file import load_prior_file


def run_import(*arguments):
    return main(["prior", "import", *arguments])


@pytest.fixture
def source(tmp_path):
    return str(tiny_snapshot(tmp_path / "x.pkl")[0])


def test_a_ct_prior_is_imported_with_its_options(tmp_path, source, capsys):
    out = tmp_path / "ct.safetensors"
    options = ["--hu-scale", "800", "--hu-offset", "-20", "--name", "mine", "--licence", "MIT"]
    assert run_import(source, str(out), *options, "--training-data", "LIDC", "--float32") == 0
    info = load_prior_file(out).info
    assert (info.name, info.licence, info.training_data) == ("mine", "MIT", "LIDC")
    assert (info.intensity.kind, info.intensity.scale, info.intensity.offset) == ("hu", 800, -20)
    printed = capsys.readouterr().out
    assert "song-unet" in printed
    assert "Licence: MIT" in printed
    assert info.details["lowest_hu"] is None


def test_a_prior_remembers_where_its_images_were_clipped(tmp_path, source):
    out = tmp_path / "ct.safetensors"
    assert run_import(source, str(out), "--hu-scale", "800", "--lowest-hu", "-800") == 0
    assert load_prior_file(out).info.details["lowest_hu"] == -800


def test_a_prior_knows_mirrored_images_only_if_somebody_says_so(tmp_path, source):
    out = tmp_path / "ct.safetensors"
    assert run_import(source, str(out), "--hu-scale", "800") == 0
    assert not load_prior_file(out).info.symmetric
    assert run_import(source, str(out), "--hu-scale", "800", "--mirrored", "--overwrite") == 0
    assert load_prior_file(out).info.symmetric


def test_an_mr_prior_of_one_channel(tmp_path, source):
    out = tmp_path / "mr.safetensors"
    assert run_import(source, str(out), "--mr") == 0
    assert load_prior_file(out).info.intensity.kind == "mr"


def test_the_licence_of_the_publisher_is_shown(tmp_path, source, capsys):
    assert run_import(source, str(tmp_path / "x.safetensors"), "--mr") == 0
    assert "CC BY-NC-SA 4.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--hu-scale 800"),
        (["--mr", "--hu-scale", "800"], "contradict"),
        (["--hu-offset", "3"], "--hu-offset needs"),
        (["--hu-scale", "0"], "--hu-scale"),
        (["--hu-scale", "nan"], "--hu-scale"),
        (["--hu-scale", "inf"], "--hu-scale"),
        (["--hu-scale", "1", "--hu-offset", "nan"], "--hu-offset"),
        (["--lowest-hu", "-800"], "--lowest-hu needs"),
        (["--hu-scale", "1", "--lowest-hu", "nan"], "--lowest-hu"),
        (["--mr", "--lowest-hu", "-800"], "contradict"),
        (["--mr", "--config", "absent.json"], "absent.json cannot be read"),
        (["--mr", "--architecture", "adm-unet"], "song-unet"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(tmp_path, source, capsys, options, message):
    out = tmp_path / "x.safetensors"
    assert run_import(source, str(out), *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_the_output_must_be_ours_to_write(tmp_path, source, capsys):
    out = tmp_path / "x.safetensors"
    out.write_bytes(b"precious")
    assert run_import(source, str(out), "--mr") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_bytes() == b"precious"
    assert run_import(source, str(out), "--mr", "--overwrite") == 0
    assert run_import(source, str(tmp_path / "x.pt"), "--mr") == 2


def test_a_configuration_file_is_read(tmp_path, source, capsys):
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"architecture": "song-unet"}))
    out = tmp_path / "x.safetensors"
    assert run_import(source, str(out), "--mr", "--config", str(config)) == 0
