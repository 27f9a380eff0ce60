"""The noise of measured k-space: estimated, declared, made equal, and never silently zero."""

from pathlib import Path

import numpy as np
import pytest
import torch
from kspace_files import fft2

from engine.data.kspace.maps import UNEXPLAINED
from engine.data.readers.kspace.arrays import open_kspace_array
from engine.physics.masks import build_mask
from engine.physics.phantoms import brain_mr
from engine.physics.sensitivity import birdcage_maps
from engine.physics.thermal_noise import thermal_noise
from engine.physics.units import IntensityMap
from engine.runs.certificate import certify
from engine.spec.input_options import InputOptions

MR = IntensityMap("mr")
COILS = "coil,read,phase"


@pytest.fixture(scope="module")
def image():
    return brain_mr(seed=3, size=128).image


@pytest.fixture(scope="module")
def coils():
    return birdcage_maps(8, 128, 128).numpy()


def scale_of(image):
    return float(np.quantile(np.abs(image), 0.99))


def noisy(kspace, sd, mix=None, seed=0):
    """Thermal noise of ``sd`` per component, ``mix`` correlating the coils."""
    pairs = np.random.default_rng(seed).standard_normal((2, *kspace.shape))
    noise = pairs[0] + 1j * pairs[1]
    if mix is not None:
        noise = np.tensordot(mix, noise, axes=1)
    return (kspace + sd * noise).astype(np.complex64)


def dataset_of(kspace, axes=COILS, **options):
    dataset = open_kspace_array(kspace, Path("scan.npy"), InputOptions(axes=axes))
    dataset.take(InputOptions(**options))
    return dataset


def poisson_like(size, density=0.15):
    plane = np.random.default_rng(1).random((size, size)) < density
    middle = slice(size // 2 - 12, size // 2 + 12)
    plane[middle, middle] = True
    return plane


def check_of(dataset, name):
    return next(check for check in dataset.checks if check.name == name)


@pytest.mark.parametrize("snr", [10, 20, 40])
@pytest.mark.parametrize("acceleration", [1, 2, 3, 4, "plane"])
def test_the_noise_of_eight_coils_is_found_within_a_tenth(image, coils, snr, acceleration):
    sd = scale_of(image) / snr
    if acceleration == "plane":
        sampled = poisson_like(128)
    else:
        sampled = build_mask("fastmri", 128, acceleration, acs_lines=20).sampled
    kspace = noisy(fft2(coils * image), sd) * sampled
    dataset = dataset_of(kspace)
    problem = dataset.problem([0], {"acceleration": 1.0}, MR, seed=0)
    assert problem.noise_sigma * problem.intensity.scale == pytest.approx(sd, rel=0.1)
    assert problem.noise_origin.startswith("estimated from")
    assert check_of(dataset, "noise").verdict == "good"


@pytest.mark.parametrize("snr", [10, 20, 40])
def test_the_true_image_fits_measured_kspace_with_a_chi_square_of_one(image, coils, snr):
    sampled = build_mask("fastmri", 128, 3, acs_lines=20).sampled
    sd = scale_of(image) / snr
    path = Path("scan.npy")
    kspace = noisy(fft2(coils * image), sd) * sampled
    dataset = open_kspace_array(kspace, path, InputOptions(axes=COILS), coils)
    problem = dataset.problem([0], {}, MR, seed=0)
    truth = torch.from_numpy(np.stack((image.real, image.imag)))[None] / problem.intensity.scale
    assert 0.9 < certify(problem, truth.float())[0].reduced < 1.1


def test_a_clean_scan_is_not_taken_for_a_noisy_one(image, coils):
    for sampled in (np.ones(128, bool), build_mask("fastmri", 128, 4, acs_lines=20).sampled):
        dataset = dataset_of(fft2(coils * image) * sampled)
        problem = dataset.problem([0], {"acceleration": 1.0}, MR, seed=0)
        assert problem.noise_sigma < 1e-4
        assert check_of(dataset, "noise").verdict == "doubtful"


def test_signal_at_the_edge_of_kspace_alone_is_an_upper_bound_and_small():
    """A checkerboard over the whole field of view leaves no place beside the object."""
    rows, columns = np.mgrid[:96, :96]
    image = 1 + 0.5 * np.sign(np.sin(rows / 5.0) * np.sin(columns / 7.0))
    found = thermal_noise(fft2(image)[None].astype(np.complex64), np.ones(96, bool))
    assert found.sigma < 0.02


def test_coils_of_unlike_and_correlated_noise_are_made_equal(image, coils):
    mix = np.eye(8) + 0.6 * np.eye(8, k=1) * 1j
    mix[0] *= 4
    sd = 0.02 * scale_of(image)
    kspace = noisy(fft2(coils * image), sd, mix)
    dataset = open_kspace_array(kspace, Path("scan.npy"), InputOptions(axes=COILS), coils)
    problem = dataset.problem([0], {"acceleration": 2.0, "acs_lines": 24}, MR, seed=0)
    truth = torch.from_numpy(np.stack((image.real, image.imag)))[None].float()
    sampled = torch.from_numpy(problem.operator.mask.sampled.copy())
    left = problem.residual(truth / problem.intensity.scale)[..., sampled]
    values = (left[0, 0::2] + 1j * left[0, 1::2]).flatten(1)
    covariance = (values @ values.mH / values.shape[1]).numpy() / (2 * problem.noise_sigma**2)
    np.testing.assert_allclose(covariance, np.eye(8), atol=0.15)
    assert problem.provenance["noise"]["prewhitened"]
    assert "prewhitened" in next(f.value for f in dataset.facts if f.name == "noise")


def test_equal_coils_are_left_as_they_are(image, coils):
    dataset = dataset_of(noisy(fft2(coils * image), 0.02 * scale_of(image)))
    assert not dataset.problem([0], {}, MR, seed=0).provenance["noise"]["prewhitened"]


def test_a_coil_that_is_not_connected_leaves_the_noise_of_the_others(image, coils):
    sd = 0.02 * scale_of(image)
    kspace = noisy(fft2(coils * image), sd)
    kspace[3] = 0
    problem = dataset_of(kspace).problem([0], {}, MR, seed=0)
    found = problem.noise_sigma * problem.intensity.scale
    assert found == pytest.approx(sd * np.sqrt(7 / 8), rel=0.1)  # the mean power over all coils


def test_declared_noise_is_taken_as_it_is_and_changes_no_number(image):
    dataset = dataset_of(fft2(image), "read,phase")
    asked = {"acceleration": 2.0}
    silent = dataset.problem([0], asked, MR, seed=0)
    declared = dataset.problem([0], {**asked, "kspace_noise": 0.07}, MR, seed=0)
    assert torch.equal(silent.measurement, declared.measurement)
    assert declared.noise_sigma == 0.07
    assert declared.noise_origin == "given"


def test_too_few_samples_leave_the_noise_unknown_and_say_so():
    kspace = noisy(np.zeros((1, 16, 16)), 1.0)[0]
    dataset = dataset_of(kspace, "read,phase")
    problem = dataset.problem([0], {"acceleration": 1.0}, MR, seed=0)
    assert problem.noise_sigma == 0
    assert problem.noise_origin == "not known"
    assert any("--kspace-noise" in warning for warning in dataset.warnings)


def test_each_slice_has_its_own_noise(image, coils):
    full = fft2(coils * image)
    stack = np.stack([noisy(full, sd * scale_of(image)) for sd in (0.02, 0.06)])
    problem = dataset_of(stack, "slice,coil,read,phase").problem([0, 1], {}, MR, seed=0)
    found = problem.noise_sigma.flatten() * problem.intensity.scale / scale_of(image)
    np.testing.assert_allclose(found, [0.02, 0.06], rtol=0.1)


def test_the_noise_of_combined_coils_is_that_of_the_combined_image(image, coils):
    noise = noisy(0 * fft2(coils * image), 1.0)
    maps = coils * (np.abs(image) > 0)
    dataset = open_kspace_array(noise, Path("a.npy"), InputOptions(axes=COILS), maps)
    dataset.take(InputOptions(coil_use="combine"))
    problem = dataset.problem([0], {"acceleration": 1.0}, MR, seed=0)
    assert float(problem.measurement.std()) == pytest.approx(problem.noise_sigma, rel=0.05)


@pytest.mark.parametrize(("acs", "verdict"), [(7, "doubtful"), (16, "good")])
def test_maps_from_too_few_lines_are_said_to_be_poor(image, coils, acs, verdict):
    sampled = build_mask("equispaced", 128, 3, acs_lines=acs).sampled
    dataset = dataset_of(fft2(coils * image) * sampled)
    dataset.problem([0], {}, MR, seed=0)
    check = check_of(dataset, "coil maps")
    assert check.verdict == verdict
    assert bool(dataset.warnings) == (verdict == "doubtful")


def test_maps_of_another_order_of_coils_are_noticed(image, coils):
    kspace = noisy(fft2(coils * image), 0.01 * scale_of(image))
    kspace *= build_mask("fastmri", 128, 3).sampled
    for maps, verdict in ((coils, "good"), (coils[::-1], "doubtful")):
        dataset = open_kspace_array(kspace, Path("a.npy"), InputOptions(axes=COILS), maps)
        dataset.problem([0], {}, MR, seed=0)
        assert check_of(dataset, "coil maps").verdict == verdict
    assert UNEXPLAINED < 0.1


@pytest.mark.parametrize("snr", [20, 1e6])
@pytest.mark.parametrize("acceleration", [2, 4, "plane"])
def test_the_scale_of_undersampled_coils_is_close_to_the_true_one(image, coils, snr, acceleration):
    sampled = poisson_like(128)
    if acceleration != "plane":
        sampled = build_mask("fastmri", 128, acceleration, acs_lines=20).sampled
    kspace = noisy(fft2(coils * image), scale_of(image) / snr) * sampled
    problem = dataset_of(kspace).problem([0], {}, MR, seed=0)
    assert problem.intensity.scale == pytest.approx(scale_of(image), rel=0.12)


def test_inspect_says_noise_maps_and_scale(tmp_path, image, coils, capsys):
    from engine.cli import main

    sampled = build_mask("fastmri", 128, 3, acs_lines=20).sampled
    kspace = noisy(fft2(coils * image), 0.05 * scale_of(image)) * sampled
    np.save(tmp_path / "scan.npy", kspace.astype(np.complex64))
    assert main(["inspect", str(tmp_path / "scan.npy"), "--kind", "kspace", "--axes", COILS]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in ("noise", "estimated from", "coil maps", "ESPIRiT-style", "MR scale"):
        assert words in said
