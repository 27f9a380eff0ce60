"""The certificate: the truth passes, what contradicts or overfits the data does not."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers import DenseOperator, dense_problem

from engine.physics.phantoms import brain_mr, ct_phantom
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap
from engine.runs.certificate import LEVEL, certify, limits
from engine.runs.prepare import prepare
from engine.spec.job import Job
from engine.workflows.trust.words import parts_sentence, verdict_sentence


@pytest.fixture
def scan(tmp_path):
    def make(image, acquisition, **options):
        np.save(tmp_path / "image.npy", image)
        job = Job(
            str(tmp_path / "image.npy"), options, acquisition=acquisition, prior="tv", device="cpu"
        )
        return prepare(job).problem

    return make


@pytest.fixture
def ct(scan):
    def make(**acquisition):
        image = ct_phantom(seed=1, size=64).image
        return scan(image, {"views": 12, **acquisition}, unit="hu", pixel_mm=6.0)

    return make


@pytest.mark.parametrize("noise", [{"photons": 1e5}, {"gaussian_noise": 0.01}])
def test_the_true_image_fits_as_well_as_the_noise_allows(ct, noise):
    problem = ct(**noise)
    (found,) = certify(problem, problem.reference)
    assert found.verdict == "fits"
    assert found.reduced == pytest.approx(1, abs=0.1)
    assert found.degrees == problem.measurement.numel()
    assert found.suspicious == ()
    assert "as well as the noise allows" in verdict_sentence(found)
    assert parts_sentence(found) == "None of the 12 views fit worse than noise explains."


def test_the_truth_is_accused_as_seldom_as_stated():
    problem = dense_problem(rows=300, size=6, batch=300, noise=0.1)
    verdicts = [found.verdict for found in certify(problem, problem.reference)]
    assert verdicts.count("fits") >= 300 * (1 - 2 * LEVEL) - 2


def test_a_perturbed_image_fits_worse(ct):
    problem = ct(gaussian_noise=0.01)
    image = problem.reference.clone()
    image[..., 24:40, 24:40] += 0.1
    (found,) = certify(problem, image)
    assert found.verdict == "worse"
    assert found.reduced > found.high
    assert "worse than noise explains" in verdict_sentence(found)
    assert len(found.suspicious) > 6


def test_an_image_that_reproduces_the_noise_overfits():
    operator = DenseOperator(torch.eye(400, dtype=torch.float64), (1, 20, 20))
    y = torch.randn(1, 1, 1, 400, dtype=torch.float64, generator=torch.manual_seed(0))
    problem = Problem(operator, y, IntensityMap("hu", 1000.0), "CT", noise_sigma=1.0)
    (found,) = certify(problem, 0.7 * y.view(1, 1, 20, 20))
    assert (found.verdict, found.reduced) == ("closer", pytest.approx(0.09, abs=0.02))
    assert "overfits the noise" in verdict_sentence(found)


def test_one_bad_view_is_found_with_and_without_a_noise_level(ct):
    for noise in ({"gaussian_noise": 0.01}, {}):
        problem = ct(**noise)
        problem.measurement[..., 7, 20:40] += 2.0
        (found,) = certify(problem, problem.reference)
        assert found.suspicious == (7,)
        assert "1 of 12 views" in parts_sentence(found)
        assert parts_sentence(found).endswith(": 7.")


@pytest.mark.parametrize("coils", [1, 3])
def test_only_measured_lines_count_in_mri(scan, coils):
    acquisition = {"acceleration": 4.0, "kspace_noise": 0.02, "coils": coils}
    problem = scan(brain_mr(seed=1, size=64).image, acquisition)
    lines = int(problem.operator.mask.sampled.sum())
    (found,) = certify(problem, problem.reference)
    assert found.degrees == 2 * coils * 64 * lines
    assert sum(value is not None for value in found.parts) == lines
    assert (found.verdict, found.part) == ("fits", "line")
    number = next(n for n, value in enumerate(found.parts) if value is not None)
    problem.measurement[..., number] += 0.1
    assert certify(problem, problem.reference)[0].suspicious == (number,)


def test_without_noise_the_relative_residual_is_told(ct):
    problem = ct()
    (exact,) = certify(problem, problem.reference)
    assert (exact.verdict, exact.reduced, exact.relative) == ("fits exactly", None, 0.0)
    (off,) = certify(problem, problem.reference + 0.1)
    assert off.verdict == "does not fit"
    assert "does not fit" in verdict_sentence(off)
    measured = dataclasses.replace(problem, provenance={"simulated": False})
    (unknown,) = certify(measured, problem.reference + 0.1)
    assert "noise level of these data is not known" in verdict_sentence(unknown)


def test_dead_rays_do_not_count(ct):
    problem = ct(gaussian_noise=0.01)
    problem.weights = torch.ones_like(problem.measurement)
    problem.weights[..., 30] = 0.0
    problem.measurement[..., 30] = 1e6
    (found,) = certify(problem, problem.reference)
    assert (found.verdict, found.degrees) == ("fits", problem.measurement.numel() - 12)


def test_few_numbers_have_wide_limits():
    narrow, wide = limits(100_000), limits(10)
    assert wide[0] < narrow[0] < 1 < narrow[1] < wide[1]
