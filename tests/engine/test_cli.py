"""The command line: what it does, and one clear sentence when it cannot."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.cli import main
from engine.physics.phantoms import brain_mr, ct_phantom

QUICK = ["--nfe", "4", "--prior", "gaussian", "--quiet"]


CT, MR = ["ct.npy", "--unit", "hu", "--pixel-mm", "6"], ["mr.npy"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_files(own_folder):
    """64 x 64 inputs, so that the many runs below stay quick."""
    np.save("ct.npy", ct_phantom(seed=1, size=64).image)
    np.save("mr.npy", brain_mr(seed=1, size=64).image)


def refused(capsys, *arguments):
    """The one-line complaint of a wrong request."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dualscope: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("demo", ["ct", "mri"])
def test_the_demo_reconstructs_to_every_output(demo, capsys):
    outputs = ["out.png", "out.npy"]
    assert main(["reconstruct", f"demo:{demo}", *QUICK, "-o", *outputs, "--record", "r.json"]) == 0
    array = np.load("out.npy", allow_pickle=False)
    assert (array.shape, array.dtype) == ((256, 256), np.float32)
    assert np.isfinite(array).all()
    picture = Image.open("out.png")
    assert (picture.size, picture.mode) == ((256, 256), "L")
    record = json.loads(Path("r.json").read_text())
    assert record["status"] == "done"
    assert len(record["history"]) == 4
    assert record["job"]["seed"] == 0
    assert len(record["prior"]["sha256"]) == len(record["input"]["sha256"]) == 64
    assert record["versions"]["torch"]
    profile = "ct-dcpnpdp" if demo == "ct" else "mri-inversebench"
    assert record["metrics"][profile]["psnr"] > 15
    if demo == "mri":
        assert record["operator"]["mask"]["name"] == "inversebench"
    else:
        assert len(record["operator"]["geometry"]["angles_rad"]) == 20
    assert sorted(p.name for p in Path().iterdir()) == [
        "out.npy",
        "out.png",
        "r.checkpoint.safetensors",
        "r.json",
    ]


def test_the_npy_of_a_ct_is_in_hounsfield_units():
    main(["reconstruct", "demo:ct", "--solver", "fbp", "--views", "360", "-o", "o.npy", "--quiet"])
    truth = ct_phantom(seed=7, size=256).image
    error = np.abs(np.load("o.npy", allow_pickle=False) - truth)[60:200, 60:200]
    assert np.median(error) < 25


WRONG = [
    ["--views", "0"],
    ["--views", "-3"],
    ["--views", "many"],
    ["--views", "2.5"],
    ["--nfe", "0"],
    ["--angular-range", "400"],
    ["--angular-range", "0"],
    ["--angular-range", "nan"],
    ["--rho", "-1"],
    ["--rho", "inf"],
    ["--rho", "1", "--rho-over-sigma2", "1"],
    ["--sigma-min", "3", "--sigma-max", "2"],
    ["--sigma-max", "0"],
    ["--cg-iterations", "0"],
    ["--solver", "magic"],
    ["--prior", "missing"],
    ["--geometry", "spiral"],
    ["--device", "abacus"],
    ["--seed", "-1"],
    ["--seed", "one"],
    ["--photons", "0"],
    ["--photons", "1e5", "--gaussian-noise", "0.01"],
    ["--detectors", "0"],
    ["--pitch-mm", "-1"],
    ["--geometry", "fan", "--source-origin-mm", "10"],
    ["--dual", "perhaps"],
    ["--preset", "magic"],
    ["--preset", "paper-mri"],
    ["--sh-width", "4"],
    ["--acceleration", "6"],
    ["--views", "20", "--acceleration", "6"],
    ["--colour", "red"],
    ["--window", "wide"],
    ["--slice", "a"],
    ["--device", "cuda:99"],
]


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
def test_a_wrong_option_is_one_sentence(wrong, capsys):
    message = refused(capsys, "reconstruct", "demo:ct", *wrong, "-o", "out.png")
    assert any(part.lstrip("-").replace("-", " ") in message.replace("-", " ") for part in wrong)
    assert not Path("out.png").exists()


@pytest.mark.parametrize(
    "wrong",
    [["--acceleration", "0.5"], ["--mask", "dots"], ["--acs-lines", "999"], ["--solver", "fbp"]],
    ids=" ".join,
)
def test_a_wrong_mri_option_is_one_sentence(wrong, capsys):
    refused(capsys, "reconstruct", "demo:mri", *wrong, "-o", "out.png")


@pytest.mark.parametrize(
    "arguments",
    [
        ["reconstruct", "missing.npy", "-o", "out.png"],
        ["reconstruct", "demo:xray", "-o", "out.png"],
        ["reconstruct", "demo:ct"],
        ["reconstruct", "-o", "out.png"],
        ["reconstruct", "demo:ct", "-o", "out.jpeg"],
        ["reconstruct", "demo:ct", "-o", "nowhere/out.png"],
        ["reconstruct", "demo:ct", "-o", "a.png", "a.png"],
        ["reconstruct", "--resume", "missing.json"],
        ["compare", "demo:ct"],
        ["compare", "demo:ct", "--solvers", "fbp,magic"],
        ["compare", "demo:ct", "--solvers", "fbp", "--nfe", "5"],
        ["bench", "horses"],
        ["prior", "info", "missing"],
        ["prior"],
        ["paint"],
        ["--speed"],
    ],
    ids=" ".join,
)
def test_a_wrong_request_is_one_sentence(arguments, capsys):
    refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.npy", b"hello"),
        ("empty.npy", b""),
        ("cut.npy", None),
        ("pickled.npy", "pickle"),
        ("image.xyz", b"1"),
        ("cube.npy", np.zeros((2, 2, 2, 2))),
        ("words.npy", np.array(["a", "b"])),
        ("nan.npy", np.full((64, 64), np.nan)),
        ("unitless.npy", np.zeros((64, 64))),
    ],
)
def test_a_broken_file_is_one_sentence_that_names_it(name, content, capsys):
    path = Path(name)
    if isinstance(content, np.ndarray):
        np.save(path, content)
    elif content == "pickle":
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    elif content is None:
        np.save(path, np.zeros((64, 64)))
        path.write_bytes(path.read_bytes()[:500])
    else:
        path.write_bytes(content)
    unit = [] if name == "unitless.npy" else ["--unit", "hu"]
    assert name in refused(capsys, "reconstruct", name, *unit, "-o", "out.png")


def test_a_folder_as_input_is_one_sentence(capsys):
    Path("folder").mkdir()
    assert "folder" in refused(capsys, "reconstruct", "folder", "-o", "out.png")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads anything")
def test_an_unreadable_file_is_one_sentence(capsys):
    np.save("secret.npy", np.zeros((64, 64)))
    Path("secret.npy").chmod(0)
    assert "secret.npy" in refused(
        capsys, "reconstruct", "secret.npy", "--unit", "hu", "-o", "out.png"
    )


def test_existing_files_are_kept_unless_asked(small_files, capsys):
    Path("out.png").write_text("precious")
    assert "--overwrite" in refused(capsys, "reconstruct", *CT, *QUICK, "-o", "out.png")
    assert Path("out.png").read_text() == "precious"
    assert main(["reconstruct", *CT, *QUICK, "-o", "out.png", "--overwrite"]) == 0
    assert Image.open("out.png").size == (256, 256)  # four times, so that the marks can be read


def test_arrays_in_every_unit_give_the_same_image():
    hu = ct_phantom(seed=1, size=64).image
    np.save("hu.npy", hu)
    np.save("mu.npy", 0.0192 * (1 + hu / 1000))
    np.save("normalised.npy", hu / 1000)
    results = []
    for unit in ("hu", "mu", "normalised"):
        arguments = [f"{unit}.npy", "--unit", unit, *QUICK, "-o", f"{unit}-out.npy"]
        assert main(["reconstruct", *arguments]) == 0
        results.append(np.load(f"{unit}-out.npy", allow_pickle=False))
    np.testing.assert_allclose(results[1], results[0], atol=2)
    np.testing.assert_allclose(results[2], results[0], atol=2)


def test_mr_output_keeps_the_scale_of_the_input():
    image = brain_mr(seed=1, size=64).image
    np.save("mr.npy", image)
    np.save("loud.npy", 1000 * image)
    for name in ("mr", "loud"):
        arguments = [f"{name}.npy", "--acceleration", "2", *QUICK, "-o", f"{name}-out.npy"]
        assert main(["reconstruct", *arguments]) == 0
    quiet, loud = (np.load(f"{n}-out.npy", allow_pickle=False) for n in ("mr", "loud"))
    np.testing.assert_allclose(loud, 1000 * quiet, rtol=1e-3, atol=1)


@pytest.mark.parametrize("noise", [[], ["--photons", "1e5"]], ids=["clean", "noisy"])
def test_a_slice_does_not_depend_on_the_slices_beside_it(noise):
    np.save("stack.npy", np.stack([ct_phantom(seed=s, size=64).image for s in range(3)]))
    # few steps, and none left out: whether the last one is needed could turn on rounding
    coarse = ["--cg-iterations", "5", "--cg-tolerance", "0"]
    common = ["reconstruct", "stack.npy", "--unit", "hu", *QUICK, *noise, *coarse, "-o"]
    assert main([*common, "alone.npy", "--slice", "2"]) == 0
    assert main([*common, "all.npy"]) == 0
    alone, together = (np.load(f, allow_pickle=False) for f in ("alone.npy", "all.npy"))
    # rounding differs with the batch size; unlike noise or statistics shared between slices
    assert np.sqrt(np.mean((together[2] - alone) ** 2)) < 0.5


def test_slices_are_chosen_and_stacked():
    stack = np.stack([ct_phantom(seed=s, size=64).image for s in range(3)])
    np.save("stack.npy", stack)
    common = ["reconstruct", "stack.npy", "--unit", "hu", *QUICK, "-o"]
    assert main([*common, "one.npy", "--slice", "1"]) == 0
    assert main([*common, "two.npy", "--slice", "1:3"]) == 0
    one, two = (np.load(f, allow_pickle=False) for f in ("one.npy", "two.npy"))
    assert (one.shape, two.shape) == ((64, 64), (2, 64, 64))
    assert np.sqrt(np.mean((two[0] - one) ** 2)) < 0.5


def test_compare_writes_table_figure_and_numbers(small_files, capsys):
    solvers = "fbp,diffpir,dc-pnpdp,dc-pnpdp:dual=off:injection=none"
    outputs = ["-o", "c.png", "c.json"]
    assert main(["compare", *CT, "--solvers", solvers, *QUICK, *outputs]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("fbp", "diffpir", "dc-pnpdp", "PSNR"))
    rows = json.loads(Path("c.json").read_text())
    assert [row["solver"] for row in rows] == solvers.split(",")
    assert all(row["psnr"] > 10 for row in rows)
    assert rows[1]["nfe"] == rows[2]["nfe"] == 4
    assert rows[2]["record"]["job"]["settings"]["dual"] is True
    assert rows[3]["record"]["job"]["settings"]["dual"] is False
    assert Image.open("c.png").size[0] > 5 * 64


def test_compare_gives_every_solver_what_it_gets_alone(small_files):
    assert main(["compare", *CT, "--solvers", "diffpir,dc-pnpdp", *QUICK, "-o", "c.json"]) == 0
    for row, name in zip(
        json.loads(Path("c.json").read_text()), ("diffpir", "dc-pnpdp"), strict=True
    ):
        record = f"{name}.json"
        assert main(["reconstruct", *CT, "--solver", name, *QUICK, "--record", record]) == 0
        alone = json.loads(Path(record).read_text())["metrics"]["ct-dcpnpdp"]["psnr"]
        assert row["psnr"] == alone


def test_photon_noise_and_starvation_are_recorded(small_files):
    arguments = ["--photons", "1e4", "--solver", "cg", "--iterations", "5", "--quiet"]
    assert main(["reconstruct", *CT, *arguments, "--record", "r.json"]) == 0
    assert json.loads(Path("r.json").read_text())["input"]["starved_rays"] >= 0


def test_every_ct_solver_and_geometry_runs(small_files):
    small = ["--nfe", "2", "--iterations", "2", "--prior", "gaussian", "--quiet", "--overwrite"]
    for solver in ("dc-pnpdp", "diffpir", "fbp", "sirt", "cg", "tv", "wavelet"):
        for geometry in ("parallel", "fan"):
            options = ["--solver", solver, "--geometry", geometry, *small]
            assert main(["reconstruct", *CT, *options, "-o", "o.npy"]) == 0


def test_every_mri_solver_runs_on_one_coil_and_on_four(small_files):
    small = ["--nfe", "2", "--iterations", "2", "--prior", "gaussian", "--quiet", "--overwrite"]
    for solver in ("dc-pnpdp", "diffpir", "zero-filled", "cg", "tv", "wavelet"):
        for coils in ("1", "4"):
            options = ["--solver", solver, "--coils", coils, *small]
            assert main(["reconstruct", *MR, *options, "-o", "o.npy"]) == 0


@pytest.mark.parametrize("preset", ["paper-svct", "paper-lact", "paper-code"])
def test_ct_presets_run_and_are_recorded_as_plain_settings(small_files, preset):
    options = ["--preset", preset, "--nfe", "2", "--cg-iterations", "3", *QUICK[2:]]
    assert main(["reconstruct", *CT, *options, "--record", "r.json"]) == 0
    settings = json.loads(Path("r.json").read_text())["job"]["settings"]
    assert (settings["nfe"], settings["cg_iterations"]) == (2, 3)  # typed options win
    if preset == "paper-code":
        assert (settings["sh_padding"], settings["sh_aggregate"]) == ("zero", "batch_mean")


def test_doctor_and_prior_list_and_help_speak(capsys):
    assert main(["doctor"]) == 0
    assert "native" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["torch"]
    assert main(["prior", "list"]) == 0
    assert "gaussian" in capsys.readouterr().out
    assert main(["prior", "info", "tv"]) == 0
    assert json.loads(capsys.readouterr().out)["licence"] == "Apache-2.0"
    with pytest.raises(SystemExit) as stopped:
        main(["reconstruct", "--help"])
    assert stopped.value.code == 0
    assert "--angular-range" in capsys.readouterr().out


def command(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_history(path, count, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and len(json.loads(path.read_text())["history"]) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never reached {count} iterations")


RUN = ["reconstruct", *CT, "--nfe", "100000", "--prior", "gaussian", "--checkpoint-seconds", "0"]


@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
@pytest.mark.parametrize("sign", ["SIGINT", "SIGTERM"])
def test_a_cancelled_run_saves_its_partial_result_and_exits_130(small_files, sign):
    process = command(*RUN, "-o", "out.npy", "--record", "r.json")
    wait_for_history(Path("r.json"), 2)
    process.send_signal(getattr(signal, sign))
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert np.load("out.npy", allow_pickle=False).shape == (64, 64)
    assert json.loads(Path("r.json").read_text())["status"] == "cancelled"


@pytest.mark.skipif(os.name == "nt", reason="no kill -9 on Windows")
def test_a_killed_run_resumes_with_the_same_outputs_named_again(small_files):
    short = ["60" if word == "100000" else word for word in RUN]
    process = command(*short, "-o", "out.npy", "--record", "r.json")
    wait_for_history(Path("r.json"), 3)
    process.kill()
    process.communicate()
    assert main(["reconstruct", "--resume", "r.json", "-o", "out.npy", "--quiet"]) == 0
    assert main([*short, "-o", "whole.npy", "--quiet"]) == 0
    assert np.array_equal(np.load("out.npy"), np.load("whole.npy"))
    assert main(["reconstruct", "--resume", "r.json", "-o", "out.npy", "again.png", "--quiet"]) == 0


def test_resuming_after_the_input_changed_is_refused(capsys):
    np.save("a.npy", ct_phantom(seed=1, size=64).image)
    options = ["a.npy", "--unit", "hu", *QUICK, "--record", "r.json"]
    assert main(["reconstruct", *options]) == 0
    np.save("a.npy", ct_phantom(seed=2, size=64).image)
    assert "changed" in refused(capsys, "reconstruct", "--resume", "r.json")
