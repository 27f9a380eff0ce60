"""What a measured sinogram's operator says of itself reaches whoever asks: no wrapper hides it."""

from dataclasses import replace

import numpy as np
import pytest
import sinogram_files as files
import torch
from helpers import relative

from engine.data.input_options import InputOptions
from engine.data.source import open_input
from engine.priors.air import AirShifted, air_mask, with_air
from engine.priors.prior import IntensityMap
from engine.priors.tv import TVPrior
from engine.solvers.data_step import DataStep, DataStepSettings

INTENSITY = IntensityMap("hu", 800.0, 0.0)
FAN = files.scan("fan", 24, 360.0)
PARALLEL = files.scan("parallel", 60, 180.0)


@pytest.fixture(params=["parallel", "fan"])
def problem(request, tmp_path):
    scan = FAN if request.param == "fan" else PARALLEL
    np.save(tmp_path / "a.npy", files.sinogram(scan))
    files.sidecar(tmp_path / "a.json", **files.told(scan))
    dataset = open_input(str(tmp_path / "a.npy"), InputOptions(size=48))
    return dataset.problem([0], {"gaussian_noise": 0.01}, INTENSITY, 0)


def test_of_a_measured_scan_automatic_is_the_ramp(problem):
    assert problem.operator.geometry is not None
    step = DataStep(problem, DataStepSettings())
    assert step.rays is not None
    assert step.iterations == 10


def test_of_a_measured_limited_arc_automatic_is_the_filter_of_the_image(tmp_path):
    arc = files.scan("parallel", 45, 90.0)
    np.save(tmp_path / "a.npy", files.sinogram(arc))
    files.sidecar(tmp_path / "a.json", **files.told(arc))
    dataset = open_input(str(tmp_path / "a.npy"), InputOptions(size=32))
    step = DataStep(dataset.problem([0], {}, INTENSITY, 0), DataStepSettings())
    assert step.rays is None
    assert step.eigenvalues is not None


def test_the_ramp_is_accepted_for_a_measured_scan_and_gives_the_same_image(problem):
    v = problem.operator.pseudo_inverse(problem.measurement)
    v = torch.nn.functional.avg_pool2d(v, 5, 1, 2)
    answers = [
        DataStep(problem, DataStepSettings(rho=50.0, preconditioner=kind, cg_iterations=200))(v, 1)
        for kind in ("none", "ramp")
    ]
    assert relative(answers[1], answers[0]) < 1e-3
    assert relative(answers[0], v) > 0.01


def test_a_clipped_prior_gets_the_air_of_a_measured_scan(problem):
    """The air that empty rays have crossed is lifted to what the prior knows, the body is not."""
    prior = TVPrior(INTENSITY, 1)
    prior.info = replace(prior.info, details={"lowest_hu": -800.0})
    shifted = with_air(prior, problem)
    assert isinstance(shifted, AirShifted)
    mask = air_mask(problem)[0, 0] > 0
    hu = problem.physical(problem.operator.pseudo_inverse(problem.measurement))[0, 0]
    side = len(mask)
    middle = slice(side // 2 - 3, side // 2 + 3)
    assert not mask[middle, middle].any()
    assert mask.float().mean() > 0.2
    assert hu[mask].mean() < -850
    assert hu[~mask].mean() > -700
    assert shifted.background.min() == pytest.approx(-200.0 / 800.0)
