"""Radial and spiral MRI: exact adjoints, the direct sum, density compensation, Toeplitz."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch

from engine.physics.fourier import centred_fft2, to_channels, to_complex
from engine.physics.noncartesian import NonCartesianMRI
from engine.physics.sensitivity import birdcage_maps
from engine.solvers.least_squares import damped_least_squares
from engine.spec.errors import RequestError
from tests.support.spokes_files import blobs, direct, radial, spiral

SIZES = [(32, 32), (31, 33), (16, 27)]


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def operators(size):
    paths = radial(9, 40, min(size) / 2)
    maps = birdcage_maps(4, *size)
    return {
        "one coil": NonCartesianMRI(paths, size),
        "spiral": NonCartesianMRI(spiral(3, 80, min(size) / 2, 5), size, maps),
        "coils": NonCartesianMRI(paths, size, maps),
        "maps per slice": NonCartesianMRI(paths, size, torch.stack([maps, 2 * maps, 1j * maps])),
        "beyond the grid": NonCartesianMRI(1.4 * paths, size, maps),
    }


KINDS = list(operators((16, 16)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_adjoint_is_the_exact_transpose(kind, size):
    op = operators(size)[kind]
    x, y = noise(3, *op.image_shape), noise(3, *op.measurement_shape, seed=1)
    ax, aty = op.forward(x), op.adjoint(y)
    assert ax.shape == y.shape
    assert aty.shape == x.shape
    assert abs(float((ax * y).sum() - (x * aty).sum())) <= 1e-5 * float(ax.norm() * y.norm())


@pytest.mark.parametrize("size", SIZES)
def test_samples_are_the_direct_sum_over_pixels(size):
    paths, maps = radial(11, 30, max(size) / 2), birdcage_maps(3, *size)
    x = noise(2, 2, *size)
    op = NonCartesianMRI(paths, size, maps)
    ours = to_complex(op.forward(x)).numpy()
    expected = direct((maps * to_complex(x)).numpy().astype(complex), paths)
    counted = np.ones(paths.shape[1:]) if op.sampled() is None else op.sampled()[0, 0].numpy()
    assert np.linalg.norm(ours - counted * expected) <= 1e-5 * np.linalg.norm(expected)


def test_a_point_at_the_corner_of_the_image_is_as_exact():
    x = torch.zeros(1, 2, 24, 24)
    x[0, 0, 0, -1] = 1
    paths = radial(7, 24, 12)
    ours = to_complex(NonCartesianMRI(paths, (24, 24)).forward(x))[0, 0].numpy()
    expected = direct(to_complex(x)[0, 0].numpy().astype(complex), paths)
    assert np.abs(ours - expected).max() <= 1e-5 * np.abs(expected).max()


def test_whole_positions_are_the_cartesian_transform():
    grid = np.stack(np.meshgrid(np.arange(-8, 8), np.arange(-10, 10), indexing="ij")).astype(float)
    x = noise(1, 2, 16, 20)
    ours = to_complex(NonCartesianMRI(grid, (16, 20)).forward(x))
    torch.testing.assert_close(ours, centred_fft2(to_complex(x)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_toeplitz_filter_is_the_way_there_and_back(kind, size):
    op = operators(size)[kind]
    x = noise(3, *op.image_shape)
    expected = op.adjoint(op.forward(x))
    assert float((op.normal(x) - expected).norm()) <= 1e-5 * float(expected.norm())
    weights = noise(3, *op.measurement_shape, seed=2).abs()
    torch.testing.assert_close(op.normal(x, weights), op.adjoint(weights * op.forward(x)))


def test_gridding_shows_a_disc_at_its_value():
    y, x = np.mgrid[:64, :64] - 32
    disc = torch.zeros(1, 2, 64, 64)
    disc[0, 0] = torch.from_numpy((np.hypot(y, x) < 20).astype(np.float32))
    inside = torch.from_numpy(np.hypot(y, x) < 15)
    for spokes, samples in ((101, 128), (140, 64), (40, 128)):
        op = NonCartesianMRI(radial(spokes, samples, 32), (64, 64))
        found = to_complex(op.pseudo_inverse(op.forward(disc)))[0, 0].abs()[inside]
        assert float(found.mean()) == pytest.approx(1, abs=0.01)
        assert float(found.std()) < 0.05


def test_the_areas_of_a_full_scan_add_up_to_the_disc_of_k_space():
    op = NonCartesianMRI(radial(101, 128, 32), (64, 64))
    assert float(op.areas().sum()) == pytest.approx(np.pi * 32**2, rel=0.03)
    assert op.coverage() > 0.97
    assert NonCartesianMRI(radial(20, 128, 32), (64, 64)).coverage() < 0.6


def test_samples_beyond_the_pixels_highest_frequency_do_not_count():
    op = operators((16, 16))["beyond the grid"]
    sampled = op.sampled()
    far = torch.from_numpy((np.abs(op.positions) > 8.001).any(axis=0))
    assert not sampled[0, 0][far].any()
    assert not op.forward(noise(1, *op.image_shape))[0, :, far].any()
    assert operators((16, 16))["coils"].sampled() is None


def test_the_norm_is_the_largest_singular_value():
    op = NonCartesianMRI(radial(9, 16, 6), (12, 12))
    basis = torch.eye(288).reshape(288, 2, 12, 12)
    matrix = op.forward(basis).flatten(1)
    assert op.norm(100) == pytest.approx(float(torch.linalg.svdvals(matrix)[0]), rel=1e-3)


@pytest.mark.parametrize("noise_sd", [0.0, 0.05])
def test_ten_steps_with_the_density_come_further_than_twenty_without(noise_sd):
    size = (48, 48)
    op = NonCartesianMRI(radial(24, 96, 24), size, birdcage_maps(8, *size))
    x = torch.zeros(1, 2, *size)
    x[0, 0] = torch.from_numpy(blobs(48)).float()
    v, y = x + 0.1 * noise(1, 2, *size), op.forward(x)
    y = y + noise_sd * noise(*y.shape, seed=3)
    rho = (noise_sd**2 + 2.5e-8 * op.norm() ** 2) / 0.1**2

    def solved(steps, precondition=None):
        missing, zero = y - op.forward(v), torch.zeros_like(v)
        limit = 1e-6 * (op.adjoint(y) + rho * v).norm()
        arguments = (op.forward, op.adjoint, lambda r: r, missing, zero, rho, steps, limit)
        return damped_least_squares(*arguments, precondition=precondition)

    exact = solved(300, op.preconditioner(rho))
    few = (solved(10, op.preconditioner(rho)) - exact).norm()
    assert float(few) < float((solved(20) - exact).norm())


def test_every_repeat_gives_the_same_bits():
    first, again = operators((16, 16))["coils"], operators((16, 16))["coils"]
    x, y = noise(2, *first.image_shape), noise(2, *first.measurement_shape)
    for one, other in (
        (first.forward(x), again.forward(x)),
        (first.adjoint(y), again.adjoint(y)),
        (first.normal(x), again.normal(x)),
        (first.pseudo_inverse(y), again.pseudo_inverse(y)),
    ):
        assert torch.equal(one, other)


def test_the_gradient_of_the_misfit_is_the_adjoint():
    op = operators((16, 16))["coils"]
    x = noise(1, *op.image_shape).requires_grad_()
    y = noise(1, *op.measurement_shape, seed=1)
    (op.forward(x) - y).square().sum().backward()
    torch.testing.assert_close(x.grad, 2 * op.adjoint(op.forward(x.detach()) - y))


def test_slices_have_their_own_maps():
    op = operators((16, 16))["maps per slice"]
    x = noise(3, *op.image_shape)
    for i in range(3):
        torch.testing.assert_close(op.of_slice(i).forward(x[i : i + 1]), op.forward(x)[i : i + 1])


def test_it_describes_itself_and_survives_pickling():
    op = operators((16, 16))["spiral"]
    described = json.loads(json.dumps(op.describe()))
    assert described["kind"] == "mri-non-cartesian"
    assert described["trajectory"]["spokes"] == 3
    assert described["coils"] == 4
    copy = pickle.loads(pickle.dumps(op))
    assert copy.describe() == op.describe()
    x = noise(1, *op.image_shape)
    assert torch.equal(copy.forward(x), op.forward(x))


def test_nothing_is_seen_where_no_coil_is():
    maps = birdcage_maps(3, 16, 16)
    maps[:, :4] = 0
    op = NonCartesianMRI(radial(9, 16, 8), (16, 16), maps)
    assert not op.support()[..., :4, :].any()
    assert not op.pseudo_inverse(noise(1, *op.measurement_shape))[..., :4, :].any()


@pytest.mark.parametrize(
    ("positions", "maps", "reason"),
    [
        (np.full((2, 3, 4), np.nan), None, "finite"),
        (np.zeros((3, 3, 4)), None, "finite numbers"),
        (np.full((2, 3, 4), 99.0), None, "No sample"),
        (np.zeros((2, 3, 4)), torch.ones(2, 9, 9, dtype=torch.complex64), "do not fit"),
        (np.zeros((2, 3, 4)), torch.ones(2, 16, 16), "do not fit"),
        (np.zeros((2, 2048, 2048)), None, "memory"),
    ],
)
def test_what_cannot_be_a_scan_is_refused_in_a_sentence(positions, maps, reason):
    with pytest.raises(RequestError, match=reason):
        NonCartesianMRI(positions, (16, 16), maps)


def test_channels_are_pairs_of_real_and_imaginary_parts():
    maps = birdcage_maps(2, 16, 16)
    op, x = NonCartesianMRI(radial(5, 16, 8), (16, 16), maps), noise(1, 2, 16, 16)
    for c in range(2):
        alone = NonCartesianMRI(radial(5, 16, 8), (16, 16)).forward(
            to_channels(maps[c] * to_complex(x))
        )
        torch.testing.assert_close(op.forward(x)[:, 2 * c : 2 * c + 2], alone)
