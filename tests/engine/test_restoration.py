"""Deblurring and super-resolution as problems, from Python and from the command line."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import relative
from scipy import ndimage

from engine.cli import main
from engine.physics.phantoms import brain_mr, ct_phantom
from engine.physics.random import make_generator
from engine.physics.restoration import restoration_problem
from engine.physics.simulate import Slices
from engine.physics.units import IntensityMap
from engine.priors.analytic import TVPrior
from engine.solvers.dc_pnpdp import DcPnpdp, DcPnpdpSettings
from engine.spec.acquisition import TASKS, RestorationAcquisition, acquisition_for
from engine.spec.errors import RequestError

HU = IntensityMap("hu", 1000.0)
QUICK = ["--prior", "gaussian", "--nfe", "10", "--quiet"]


@cache
def phantom(kind, seed):
    return (ct_phantom if kind == "CT" else brain_mr)(seed=seed, size=64).image


def ct_slices(numbers=(0, 1), size=64):
    images = [torch.from_numpy(phantom("CT", n)[:size, :size]).float() for n in numbers]
    return Slices(torch.stack(images)[:, None], "CT", 1.0, tuple(numbers))


def mr_slices():
    image = torch.from_numpy(phantom("MR", 1).astype(np.complex64))
    return Slices(torch.view_as_real(image).movedim(-1, 0)[None], "MR", 1.0)


def test_a_blurred_slice_is_the_blurred_image_in_the_priors_units():
    settings = RestorationAcquisition(task="deblur-gaussian", blur_sd=1.5, image_noise=0.0)
    source = ct_slices()
    problem = restoration_problem(source, settings, HU)
    for n in range(2):
        expected = ndimage.gaussian_filter(source.images[n, 0].numpy() / 1000, 1.5, mode="wrap")
        np.testing.assert_allclose(problem.measurement[n, 0].numpy(), expected, atol=1e-5)
    assert relative(problem.physical(problem.reference), source.images) < 1e-6
    assert (problem.noise_sigma, problem.modality, problem.slices) == (0.0, "CT", (0, 1))
    assert problem.operator.describe()["sd"] == 1.5


@pytest.mark.parametrize("task", TASKS)
def test_the_noise_has_its_sd_and_belongs_to_its_slice(task):
    source = ct_slices()
    clean, noisy = (
        restoration_problem(source, RestorationAcquisition(task=task, image_noise=sd), HU, seed=3)
        for sd in (0.0, 0.05)
    )
    added = noisy.measurement - clean.measurement
    assert float(added.std()) == pytest.approx(0.05, rel=0.1)
    assert noisy.noise_sigma == 0.05
    alone = Slices(source.images[1:], "CT", 1.0, (1,))
    settings = RestorationAcquisition(task=task, image_noise=0.05)
    second = restoration_problem(alone, settings, HU, seed=3)
    torch.testing.assert_close(second.measurement, noisy.measurement[1:], rtol=0, atol=1e-6)


def test_an_mr_image_keeps_its_phase_and_its_scale():
    source = mr_slices()
    settings = RestorationAcquisition(task="super-resolution", factor=4, image_noise=0.0)
    problem = restoration_problem(source, settings, IntensityMap("mr"))
    assert problem.measurement.shape == (1, 2, 16, 16)
    assert relative(problem.physical(problem.reference), source.images) < 1e-6
    for channel in range(2):
        one = Slices(source.images[:, [channel, channel]], "MR", 1.0)
        alone = problem.operator.forward(problem.intensity.to_normalised(one.images))
        torch.testing.assert_close(alone[:, 0], problem.measurement[:, channel])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("boundary", "size"), [("circular", 64), ("zero", 61)])
def test_dc_pnpdp_restores_better_than_the_quick_image(task, boundary, size):
    """With the closed-form data step, and with conjugate gradients where there is none."""
    settings = RestorationAcquisition(
        task=task, blur_sd=1.5, motion_length=7, factor=2, boundary=boundary, image_noise=0.01
    )
    problem = restoration_problem(ct_slices((0,), size), settings, HU)
    quick = problem.operator.pseudo_inverse(problem.measurement)
    steps = DcPnpdp().iterate(problem, TVPrior(HU, 1), DcPnpdpSettings(nfe=15), make_generator(0))
    image = list(steps)[-1].image
    assert relative(image, problem.reference) < 0.9 * relative(quick, problem.reference)


def test_a_prior_of_the_other_kind_is_refused():
    with pytest.raises(RequestError, match="not for CT"):
        restoration_problem(ct_slices(), RestorationAcquisition(), IntensityMap("mr"))


def test_a_task_decides_which_settings_are_meant():
    found = acquisition_for("CT", {"task": "super-resolution", "factor": 2})
    assert found == RestorationAcquisition(task="super-resolution", factor=2)
    with pytest.raises(RequestError, match="views"):
        acquisition_for("CT", {"task": "super-resolution", "views": 20})


@pytest.fixture
def small_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("ct.npy", phantom("CT", 1))
    np.save("mr.npy", phantom("MR", 1))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    "data", [["ct.npy", "--unit", "hu", "--pixel-mm", "6"], ["mr.npy"]], ids=["ct", "mr"]
)
@pytest.mark.parametrize("solver", ["dc-pnpdp", "sitcom"])
def test_the_command_line_restores(task, data, solver, small_files):
    arguments = ["--task", task, "--solver", solver, *QUICK]
    assert main(["reconstruct", *data, *arguments, "-o", "o.npy", "--record", "r.json"]) == 0
    assert np.load("o.npy", allow_pickle=False).shape == (64, 64)
    record = json.loads(Path("r.json").read_text())
    assert record["job"]["acquisition"] == {"task": task}
    assert record["history"][-1]["nfe"] == 10
    assert record["operator"]["kind"] in ("blur", "super-resolution")
    before = np.load("o.npy", allow_pickle=False)
    assert main(["reconstruct", "--resume", "r.json", "-o", "o.npy", "--quiet"]) == 0
    np.testing.assert_array_equal(np.load("o.npy", allow_pickle=False), before)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (["--task", "sharpen"], "--task"),
        (["--blur-sd", "2"], "needs a --task"),
        (["--task", "deblur-motion", "--views", "20"], "--views is for CT"),
        (["--task", "super-resolution", "--factor", "65"], "--factor"),
        (["--task", "deblur-gaussian", "--blur-sd", "0"], "--blur-sd"),
        (["--task", "deblur-gaussian", "--solver", "sitcom", "--memory-gb", "1e-9"], "would fit"),
        (["--solver", "sitcom", "--nfe", "4"], "--inner-steps"),
        (["--task", "deblur-gaussian", "--preset", "paper-lact"], "is for scans"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_request_is_one_sentence(wrong, word, small_files, capsys):
    data = ["ct.npy", "--unit", "hu", "--pixel-mm", "6", "--prior", "tv", "--quiet"]
    assert main(["reconstruct", *data, *wrong, "-o", "o.png"]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1
    assert not Path("o.png").exists()


def test_measured_data_cannot_be_blurred(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("scan.npy", np.ones((10, 20), np.float32))
    scan = ["--kind", "sinogram", "--unit", "line-integral", "--scan-geometry", "parallel"]
    known = [*scan, "--scan-pitch-mm", "1", "--scan-range", "180"]
    assert main(["reconstruct", "scan.npy", *known, "--task", TASKS[0], "-o", "o.png"]) == 2
    assert "--task is for images" in capsys.readouterr().err
