"""The noise of a measured scan: found in its rays, or given, and passed on to the problem."""

import h5py
import numpy as np
import pytest
import sinogram_files as files
import torch
from scipy.ndimage import gaussian_filter1d

from engine.data.sinogram.line_noise import (
    LineNoise,
    declared_noise,
    estimated_noise,
    transferred_noise,
)
from engine.data.source import open_input
from engine.physics.noise import poisson_line_integrals
from engine.physics.noise_estimate import Detector, photon_noise, photon_transfer
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


# -- photon transfer -------------------------------------------------------------------------------

GAIN, ELECTRONIC = 2.5, 30.0  # counts of a photon, and SD of the detector's own noise in counts


def frames(photons, count, seed, beam=0.0):
    """Flat frames of bins that saw ``photons`` on average; ``beam``: how unsteady it is."""
    random = np.random.default_rng(seed)
    level = 1 + beam * random.standard_normal((count, 1))
    counted = random.poisson(np.clip(level, 0.1, None) * photons, (count, len(photons)))
    return 400.0 + GAIN * counted + random.normal(0, ELECTRONIC, counted.shape)


def air(bins, mean=5000.0):
    return mean * (0.7 + 0.6 * np.random.default_rng(9).random(bins))


@pytest.mark.parametrize("beam", [0.0, 0.05])
def test_gain_and_electronic_noise_come_from_the_mean_and_variance_of_frames(beam):
    photons = air(600)
    found = photon_transfer(frames(photons, 20, 1, beam), frames(0 * photons, 20, 2))
    assert found.gain == pytest.approx(GAIN, rel=0.03)
    assert found.electronic == pytest.approx(ELECTRONIC, rel=0.03)
    np.testing.assert_allclose(found.photons, photons, rtol=0.08)


def test_a_pattern_of_the_detector_and_a_few_bad_pixels_are_no_noise():
    photons = air(600)
    flats, darks = frames(photons, 20, 1), frames(0 * photons, 20, 2)
    pattern = np.random.default_rng(3).normal(0, 150, 600)
    flats[::2, 17] += 30_000  # a pixel that comes and goes
    found = photon_transfer(flats + pattern, darks + pattern)
    assert found.gain == pytest.approx(GAIN, rel=0.05)


def test_frames_that_are_too_few_or_do_not_vary_say_nothing():
    photons = air(600)
    assert photon_transfer(frames(photons, 1, 0), None) is None
    assert photon_transfer(frames(photons[:50], 3, 0), None) is None
    assert photon_transfer(np.ones((5, 600)), np.zeros((5, 600))) is None


def test_without_dark_frames_all_noise_is_taken_for_that_of_photons():
    photons = air(600)
    found = photon_transfer(frames(photons, 20, 1) - 400, None)
    assert found.electronic == 0
    variance = GAIN**2 * photons.mean() + ELECTRONIC**2
    assert found.gain == pytest.approx(variance / (GAIN * photons.mean()), rel=0.03)


def test_the_weights_of_a_ray_are_those_of_its_own_bin():
    """Variance of -log of counts: (n + e^2) / n^2 with n photons, e electronic noise in photons."""
    photons = air(64)
    found = Detector(GAIN, ELECTRONIC, GAIN * photons)
    y = torch.linspace(0, 2, 3, dtype=torch.float64).view(1, 1, 3, 1).expand(1, 1, 3, 64)
    noise = transferred_noise([found], [np.zeros((4, 8))], flip=True, binning=1)
    sigma, weights = noise.of(y, 1.0, weighted=True)
    counts = photons[::-1] * np.exp(-y[0, 0].numpy())
    variance = (counts + (ELECTRONIC / GAIN) ** 2) / counts**2
    torch.testing.assert_close(sigma**2 / weights, torch.from_numpy(variance)[None, None])
    joined = transferred_noise([found], [np.zeros((4, 8))], flip=False, binning=2)
    assert joined.photons[0] == pytest.approx(2 * photons.mean())
    assert joined.electronic == pytest.approx(2**0.5 * ELECTRONIC / GAIN)


def counted_file(path, blur=0.0, flats=60):
    """A Data Exchange file as a detector of known gain and noise would write it."""
    clean = files.sinogram(PARALLEL)
    photons = air(clean.shape[1], 3e4)
    random = np.random.default_rng(5)
    seen = random.poisson(photons * np.exp(-clean)).astype(float)
    if blur:  # light spreads: the noise of neighbouring bins is alike
        seen = photons * np.exp(-clean) + gaussian_filter1d(seen - photons * np.exp(-clean), blur)
    data = 400 + GAIN * seen + random.normal(0, ELECTRONIC, seen.shape)
    with h5py.File(path, "w") as file:
        file["implements"] = "exchange"
        group = file.create_group("exchange")
        group["data"] = data[:, None].astype(np.float32)
        group["data_white"] = frames(photons, flats, 6)[:, None]
        group["data_dark"] = frames(0 * photons, flats, 7)[:, None]
        group["theta"] = np.rad2deg(PARALLEL.angles_rad)
    return open_input(str(path), InputOptions(mu_water=0.02, scan_pitch_mm=PARALLEL.pitch_mm))


def test_a_file_with_several_flat_fields_is_weighed_by_them_and_says_so(tmp_path):
    dataset = counted_file(tmp_path / "a.h5")
    problem = dataset.problem([0], {}, INTENSITY, 0)
    assert problem.noise_origin.startswith("photon transfer")
    (fact,) = [fact for fact in dataset.facts if fact.name == "noise"]
    assert fact.origin == problem.noise_origin
    assert "electronic noise" in fact.value
    record = problem.provenance["noise"]
    assert record["gain"] == pytest.approx(GAIN, rel=0.1)
    assert record["electronic_sd"] == pytest.approx(ELECTRONIC / GAIN, rel=0.1)
    assert record["photons"][0] == pytest.approx(3e4, rel=0.1)
    assert record["photons_by_neighbouring_rays"][0] == pytest.approx(3e4, rel=0.3)
    assert not [check for check in dataset.checks if check.name == "noise"]
    brightness = problem.weights[0, 0, 0] / problem.weights[0, 0, 0].mean()
    expected = air(brightness.numel())  # the first view begins and ends in air
    assert float(brightness[:3].mean()) > 0
    ratio = brightness[:6].numpy() / (expected[:6] / expected.mean())
    assert ratio.max() / ratio.min() < 1.1


def test_when_neighbouring_rays_speak_for_other_noise_a_check_says_so(tmp_path):
    dataset = counted_file(tmp_path / "a.h5", blur=1.5)
    dataset.problem([0], {}, INTENSITY, 0)
    (check,) = [check for check in dataset.checks if check.name == "noise"]
    assert check.verdict == "doubtful"
    assert "neighbouring rays for noise" in check.sentence
    assert check.sentence in dataset.notices


def test_with_one_flat_field_neighbouring_rays_are_asked(tmp_path):
    problem = counted_file(tmp_path / "a.h5", flats=1).problem([0], {}, INTENSITY, 0)
    assert problem.noise_origin == "estimated from neighbouring rays"
    assert problem.provenance["noise"]["gain"] is None
