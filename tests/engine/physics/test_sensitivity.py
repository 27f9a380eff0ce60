"""Coil maps from the centre of k-space: against known sensitivities."""

import numpy as np
import pytest
import torch
from helpers import relative

from engine.physics.cg import conjugate_gradients
from engine.physics.fourier import centred_fft2, to_channels
from engine.physics.masks import build_mask, given
from engine.physics.mri import MultiCoilMRI
from engine.physics.phantoms import brain_mr
from engine.physics.prewhitening import prewhitening
from engine.physics.sensitivity import birdcage_maps, central_block, estimate_maps, principal_coil
from engine.spec.errors import RequestError

SIZE = (112, 96)


@pytest.fixture(scope="module")
def image():
    whole = brain_mr(seed=3, size=128).image
    return torch.from_numpy(np.ascontiguousarray(whole[8:120, 16:112]))


@pytest.fixture(scope="module")
def coils():
    return birdcage_maps(6, *SIZE)


def lines(acs, spacing=3, width=SIZE[1]):
    return build_mask("equispaced", width, spacing, acs_lines=acs).sampled


def in_object(image):
    return image.abs() > 0.1


@pytest.mark.parametrize(
    ("acs", "method", "least", "residual"),
    [(20, "ESPIRiT-style", 0.9995, 0.01), (7, "low resolution", 0.99, 0.05)],
)
def test_maps_are_the_true_ones_up_to_a_phase_per_pixel(image, coils, acs, method, least, residual):
    kspace = centred_fft2(coils * image)
    sampled = lines(acs)
    found = estimate_maps(kspace * torch.from_numpy(sampled.copy()), sampled)
    assert found.method == method
    overlap = (found.maps.conj() * coils).sum(dim=0).abs()
    assert float(overlap[in_object(image)].min()) > least
    power = found.maps.abs().square().sum(dim=0)
    torch.testing.assert_close(power[in_object(image)], torch.ones_like(power)[in_object(image)])
    # what the maps cannot explain of the coil images: || E - S S^H E ||
    coil_images = coils * image
    explained = found.maps * (found.maps.conj() * coil_images).sum(dim=0)
    assert relative(explained, coil_images) < residual


def test_maps_end_where_the_object_ends(image, coils):
    noise = torch.randn(6, *SIZE, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    kspace = centred_fft2(coils * image) + 0.002 * noise
    found = estimate_maps(kspace, np.ones(SIZE[1], bool))
    corners = found.maps[:, :8, :8]
    assert float(corners.abs().amax()) == 0


def test_the_principal_coil_sees_no_phase_of_its_own(image, coils):
    kspace = centred_fft2(coils * image)
    found = estimate_maps(kspace, np.ones(SIZE[1], bool))
    middle = kspace[:, 44:68, 36:60].to(torch.complex128)
    seen = torch.einsum("c,chw->hw", principal_coil(middle).conj().to(torch.complex64), found.maps)
    assert float(seen.imag.abs().amax()) < 1e-4
    assert float(seen.real.amin()) >= -1e-4


def test_odd_sizes_and_a_block_off_the_middle(image, coils):
    """The calibration lines need not be symmetric about the zero frequency."""
    odd, maps = image[:111, :95], birdcage_maps(4, 111, 95)
    sampled = np.zeros(95, bool)
    sampled[40:58] = True  # zero frequency at 47
    assert central_block(sampled)[1] == slice(40, 58)
    kspace = centred_fft2(maps * odd) * torch.from_numpy(sampled)
    found = estimate_maps(kspace, sampled)
    overlap = (found.maps.conj() * maps).sum(dim=0).abs()
    assert float(overlap[in_object(odd)].quantile(0.02)) > 0.999


def test_a_centre_sampled_in_two_directions_is_found_and_calibrates(image, coils):
    """A scan of two phase directions: single points, and a full block of 22 x 24 around zero."""
    sampled = np.random.default_rng(0).random(SIZE) < 0.2
    sampled[45:67, 36:60] = True
    sampled[[44, 67], 48] = sampled[56, [35, 60]] = False
    assert central_block(sampled) == (slice(45, 67), slice(36, 60))
    kspace = centred_fft2(coils * image) * torch.from_numpy(sampled)
    found = estimate_maps(kspace, sampled)
    assert (found.method, found.lines) == ("ESPIRiT-style", 22)
    overlap = (found.maps.conj() * coils).sum(dim=0).abs()
    assert float(overlap[in_object(image)].min()) > 0.999


def test_a_known_noise_level_makes_better_maps_of_a_noisy_scan(image, coils):
    sd = 0.1 * float(image.abs().quantile(0.99))
    draw = torch.randn(6, *SIZE, 2, generator=torch.Generator().manual_seed(0))
    kspace = centred_fft2(coils * image) + sd * torch.view_as_complex(draw)
    sampled, coil_images = np.ones(SIZE[1], bool), coils * image
    errors = []
    for sigma in (0.0, sd):
        maps = estimate_maps(kspace, sampled, sigma=sigma).maps
        explained = maps * (maps.conj() * coil_images).sum(dim=0)
        errors.append(relative(explained, coil_images))
    assert errors[1] < 0.85 * errors[0]


def test_calibration_data_that_are_all_noise_still_give_maps():
    draw = torch.randn(4, 32, 32, 2, generator=torch.Generator().manual_seed(0))
    found = estimate_maps(torch.view_as_complex(draw), np.ones(32, bool), sigma=1.0)
    assert found.method == "low resolution"
    assert float((found.maps.abs().sum(dim=0) > 0).float().mean()) > 0.5


def sense(operator, y):
    def normal(x):
        return operator.adjoint(operator.forward(x)) + 1e-4 * x

    rhs = operator.adjoint(y)
    return conjugate_gradients(normal, rhs, torch.zeros_like(rhs), iterations=40)


def test_sense_with_estimated_maps_is_as_good_as_with_true_ones(image, coils):
    kspace = centred_fft2(coils * image)
    mask = given(lines(20))
    found = estimate_maps(kspace * mask.to_tensor()[0], mask.sampled)
    images = []
    for maps in (coils, found.maps):
        operator = MultiCoilMRI(mask, maps)
        y = to_channels((kspace * mask.to_tensor()[0])[None])
        x = sense(operator, y)
        images.append(torch.complex(x[0, 0], x[0, 1]).abs())
    truth = image.abs()
    with_true, with_estimated = (relative(x, truth) for x in images)
    assert with_true < 0.06
    assert with_estimated < with_true + 0.02


def test_too_few_central_lines_are_refused_with_a_sentence(image, coils):
    kspace = centred_fft2(coils * image)
    with pytest.raises(RequestError, match="slice 4 has 1 fully sampled lines"):
        estimate_maps(kspace, lines(0), "scan.h5: slice 4")
    with pytest.raises(RequestError, match="zero at the centre"):
        estimate_maps(torch.zeros_like(kspace), np.ones(SIZE[1], bool))


def test_prewhitened_noise_is_white_and_has_the_stated_sd():
    rng = np.random.default_rng(0)
    mix = np.array([[1, 0.5j, 0], [0, 2, 0.3], [0.2, 0, 0.7]])
    white = rng.standard_normal((2, 3, 40_000)) / np.sqrt(2)
    noise = (mix @ (white[0] + 1j * white[1])).astype(np.complex64)
    found = prewhitening(noise, variance_ratio=4.0)
    after = found.apply(2 * noise)  # imaging noise: four times the variance
    covariance = after @ after.conj().T / after.shape[1]
    np.testing.assert_allclose(covariance, 2 * found.sigma**2 * np.eye(3), atol=0.02)
    assert abs(np.linalg.det(found.matrix)) == pytest.approx(1, rel=1e-4)
    assert prewhitening(noise[:, :20]) is None
    assert prewhitening(np.zeros((2, 100), np.complex64)) is None
