"""The noise of a measured scan: found in its rays, or given, and passed on to the problem."""

import numpy as np
import pytest
import sinogram_files as files
import torch

from engine.data.sinogram.line_noise import LineNoise, declared_noise, estimated_noise
from engine.data.source import open_input
from engine.physics.noise import poisson_line_integrals
from engine.physics.noise_estimate import photon_noise
from engine.physics.units import IntensityMap, noise_scale
from engine.spec.acquisition import CTAcquisition
from engine.spec.input_options import InputOptions

INTENSITY = IntensityMap("hu", 1000.0)
PARALLEL = files.scan("parallel", 180, 180.0)
FAN = files.scan("fan", 120, 360.0)


def noisy(geometry, photons, seed=0, electronic=0.0):
    clean = torch.from_numpy(files.sinogram(geometry)).double()[None, None]
    generator = torch.Generator().manual_seed(seed)
    return poisson_line_integrals(clean, photons, electronic, generator)


@pytest.mark.parametrize("geometry", [PARALLEL, FAN], ids=["parallel", "fan"])
@pytest.mark.parametrize("photons", [1e4, 1e5, 1e6])
def test_the_noise_of_counted_photons_is_found_within_ten_percent(geometry, photons):
    measured = noisy(geometry, photons)
    found = photon_noise(measured.line_integrals[0, 0].numpy())
    noise = LineNoise("found", (found,))
    sigma, weights = noise.of(measured.line_integrals, 1.0, weighted=True)
    assert float(sigma) == pytest.approx(measured.sigma, rel=0.1)
    assert float((weights / measured.weights - 1).abs().max()) < 0.02


def test_noise_that_neighbouring_bins_share_is_seen_along_the_views():
    clean = files.sinogram(PARALLEL)
    grain = np.random.default_rng(0).normal(0, 0.02, (clean.shape[0], clean.shape[1] + 8))
    kernel = np.ones(9) / 3  # a blur that leaves the variance of every ray as it was
    shared = np.stack([np.convolve(row, kernel, "valid") for row in grain])
    found = photon_noise(clean * 0 + shared)
    assert 1 / found == pytest.approx(0.02**2, rel=0.25)


def test_too_few_rays_say_nothing():
    assert photon_noise(np.zeros((4, 8))) is None
    assert not estimated_noise([np.zeros((4, 8))]).known


def test_given_noise_is_taken_as_it_is():
    assert declared_noise(CTAcquisition()) is None
    given = declared_noise(CTAcquisition(photons=1e4, electronic_noise=5.0))
    assert given == LineNoise("given", (1e4,), 5.0)
    assert declared_noise(CTAcquisition(gaussian_noise=0.02)) == LineNoise("given", sd=0.02)


def test_the_weights_are_inverse_variances_of_mean_one():
    y = torch.linspace(0, 5, 50, dtype=torch.float64).view(1, 1, 5, 10)
    noise = LineNoise("given", (1e4,), electronic=20.0)
    sigma, weights = noise.of(y, 3.0, weighted=True)
    counts = 1e4 * torch.exp(-y)
    variance = 9 * (counts + 400) / counts**2
    assert torch.allclose(sigma.double() ** 2 / weights, variance, rtol=1e-5)
    assert float(weights.mean()) == pytest.approx(1)
    mean, none = noise.of(y, 3.0, weighted=False)
    assert none is None
    assert float(mean) ** 2 == pytest.approx(float(variance.mean()), rel=1e-5)


@pytest.fixture
def noisy_file(tmp_path):
    return files.fips_v5(
        tmp_path / "a.mat", noisy(FAN, 3e4).line_integrals[0, 0].numpy(), FAN, "CtData"
    )


def opened(path):
    return open_input(str(path), InputOptions(mu_water=0.02))


def test_a_measured_scan_is_a_problem_with_estimated_noise_and_weights(noisy_file):
    dataset = opened(noisy_file)
    problem = dataset.problem([0], {}, INTENSITY, 0)
    known = noisy(FAN, 3e4).sigma * noise_scale(INTENSITY, 0.02)
    assert float(problem.noise_sigma) == pytest.approx(known, rel=0.1)
    assert problem.noise_origin == "estimated from neighbouring rays"
    assert problem.weights is not None
    (fact,) = [fact for fact in dataset.facts if fact.name == "noise"]
    assert "photons per ray" in fact.value
    assert problem.provenance["noise"]["photons"][0] == pytest.approx(3e4, rel=0.2)


def test_the_noise_of_a_measured_scan_can_be_given_or_left_out(noisy_file):
    dataset = opened(noisy_file)
    given = dataset.problem([0], {"photons": 1e5, "weighted": False}, INTENSITY, 0)
    assert given.noise_origin == "given"
    assert given.weights is None
    assert float(given.noise_sigma) < float(dataset.problem([0], {}, INTENSITY, 0).noise_sigma)
    free = dataset.problem([0], {"noise": "none"}, INTENSITY, 0)
    assert (free.noise_sigma, free.weights) == (0.0, None)
    assert not any("not known" in warning for warning in dataset.warnings)


def test_giving_the_noise_changes_no_measured_number(noisy_file):
    dataset = opened(noisy_file)
    given = dataset.problem([0], {"gaussian_noise": 0.1}, INTENSITY, 0)
    assert torch.equal(given.measurement, dataset.problem([0], {}, INTENSITY, 0).measurement)
