"""What a measured sinogram's operator says of itself reaches whoever asks: no wrapper hides it."""

from dataclasses import replace

import numpy as np
import pytest
import sinogram_files as files
import torch
from ct_ellipses import raster
from helpers import relative

from engine.data.source import open_input
from engine.physics.field_of_view import field_of_view_mm
from engine.physics.random import make_generator
from engine.physics.units import IntensityMap
from engine.priors.adapted import AirShifted, air_mask, with_air
from engine.priors.analytic import TVPrior
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.sparse import TV
from engine.spec.input_options import InputOptions

INTENSITY = IntensityMap("hu", 800.0, 0.0)
FROM_AIR = IntensityMap("hu", 800.0, -1000.0)  # in which the smallest image is air
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


# -- objects that are wider than the detector ------------------------------------------------------


def truncated(tmp_path, kind, bins=30, **told):
    """A scan whose detector is half as wide as the phantom."""
    whole = files.scan(kind, 120, 360.0 if kind == "fan" else 180.0)
    scan = replace(whole, detectors=bins)
    np.save(tmp_path / "cut.npy", files.sinogram(scan))
    files.sidecar(tmp_path / "cut.json", **files.told(scan))
    dataset = open_input(str(tmp_path / "cut.npy"), InputOptions(mu_water=0.02, **told))
    return dataset, dataset.problem([0], {}, FROM_AIR, 0)


def error_inside(dataset, problem, image):
    """RMS in HU of what is larger than 5 pixels, in nine tenths of the circle of the detector."""
    side, pixel = dataset.image_size[0], dataset.pixel_mm[0]
    truth = 1000 * (raster(files.PHANTOM, dataset.image_size, pixel) / 0.02 - 1)
    axis = (np.arange(side) - (side - 1) / 2) * pixel
    inside = np.hypot(axis[None, :], axis[:, None]) < 0.9 * field_of_view_mm(dataset.geometry)
    error = problem.physical(image)[0] - torch.from_numpy(truth)
    smooth = torch.nn.functional.avg_pool2d(error.float(), 5, 1, 2)[0].numpy()
    return float(np.sqrt((smooth[inside] ** 2).mean()))


def the_check(dataset):
    return next(check for check in dataset.checks if check.name == "field of view")


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_fbp_of_a_truncated_scan_extrapolates_and_says_so(tmp_path, kind):
    dataset, problem = truncated(tmp_path, kind)
    check = the_check(dataset)
    assert check.verdict == "doubtful"
    assert "wider than the detector" in check.sentence
    assert "--extended-fov" in check.fix
    y = problem.measurement
    assert problem.operator.describe()["outside_field_of_view"] == "extrapolated"
    ours = error_inside(dataset, problem, problem.operator.pseudo_inverse(y))
    problem.operator.truncated = False
    plain = error_inside(dataset, problem, problem.operator.pseudo_inverse(y))
    assert ours < 0.2 * plain
    assert abs(dataset.preview(0)[16:24, 16:24].mean()) < 300  # no longer the bright bowl


@pytest.mark.parametrize("kind", ["parallel", "fan"])
def test_an_extended_image_has_room_for_what_lies_beside_the_detector(tmp_path, kind):
    """The object explains the measurement only on an image that holds all of it."""
    errors = []
    for extended in (None, 2.0):
        dataset, problem = truncated(tmp_path, kind, extended_fov=extended)
        solver = TV()
        settings = solver.settings_class(iterations=80)
        *_, last = solver.iterate(problem, None, settings, make_generator(0))
        errors.append(error_inside(dataset, problem, last.image))
    assert the_check(dataset).verdict == "corrected"
    assert dataset.image_size[0] == pytest.approx(2 * open_size(tmp_path), abs=1)
    assert errors[1] < 0.2 * errors[0]
    assert any(fact.name == "extended field of view" for fact in dataset.facts)


def open_size(tmp_path):
    return open_input(str(tmp_path / "cut.npy"), InputOptions()).image_size[0]


def test_a_scan_that_holds_its_object_is_good(tmp_path, problem):
    assert problem.operator.truncated is False


def test_an_image_smaller_than_the_object_is_doubtful(tmp_path):
    whole = files.scan("parallel", 60, 180.0)
    np.save(tmp_path / "a.npy", files.sinogram(whole))
    files.sidecar(tmp_path / "a.json", **files.told(whole))
    dataset = open_input(str(tmp_path / "a.npy"), InputOptions(size=24, pixel_mm=1.0))
    dataset.problem([0], {}, INTENSITY, 0)
    check = the_check(dataset)
    assert check.verdict == "doubtful"
    assert "larger than the image" in check.sentence
    whole = open_input(str(tmp_path / "a.npy"), InputOptions())
    whole.problem([0], {}, INTENSITY, 0)
    assert the_check(whole).verdict == "good"
