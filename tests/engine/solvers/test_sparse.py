"""TV and l1-wavelets: the right optimum, at the noise, and honest about having arrived."""

import itertools
import math

import pytest
import torch
from helpers import DenseOperator, dense_problem, relative

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI
from engine.physics.noise import complex_gaussian, poisson_line_integrals
from engine.physics.problem import Problem
from engine.physics.random import make_generator
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.priors.analytic import total_variation, tv_prox
from engine.runs.run import Run
from engine.solvers.discrepancy import multiplier, noise_norm, weighted_norm
from engine.solvers.sparse import (
    TV,
    Gradient,
    TVSettings,
    shrink,
    sizes,
)
from engine.solvers.wavelets import HIGH_PASS, LOW_PASS, Wavelet, Wavelets, WaveletSettings


def identity_problem(image, noise=0.0):
    """Denoising: A = 1."""
    n = image[0].numel()
    operator = DenseOperator(torch.eye(n, dtype=image.dtype), tuple(image.shape[1:]))
    y = operator.forward(image)
    return Problem(operator, y, IntensityMap("hu", 1000.0), "CT", noise_sigma=noise)


def solved(solver, problem, **settings):
    run = Run(problem, solver, solver.settings_class(**settings))
    for _ in run:
        pass
    return run


def blocks(size=32):
    image = torch.zeros(1, 1, size, size, dtype=torch.float64)
    image[..., size // 4 : size // 2, size // 4 : 3 * size // 4] = 1
    image[..., 5 * size // 8 : 3 * size // 4, size // 2 : 5 * size // 8] = 0.5
    return image


def ct_problem(photons=1e5):
    image = blocks()
    operator = CTOperator(CTGeometry.sparse_view(20, 180.0, size=32), dtype=torch.float64)
    noisy = poisson_line_integrals(0.05 * operator.forward(image), photons, 0, make_generator(1))
    return Problem(
        operator,
        noisy.line_integrals / 0.05,
        IntensityMap("hu", 1000.0),
        "CT",
        noise_sigma=noisy.sigma / 0.05,
        weights=noisy.weights,
        reference=image,
    )


def coil_problem(sd=0.05):
    image = torch.cat([blocks(48), 0.3 * blocks(48).flip(-1)], dim=1)
    mask = build_mask("inversebench", 48, 4)
    operator = MultiCoilMRI(mask, birdcage_maps(8, 48, 48).to(torch.complex128))
    y = complex_gaussian(operator.forward(image), sd, make_generator(2), mask)
    return Problem(operator, y, IntensityMap("mr", 1.0), "MR", noise_sigma=sd, reference=image)


def reduced(problem, x):
    return float((weighted_norm(problem.residual(x), problem.weights) / noise_norm(problem)) ** 2)


def test_a_step_is_denoised_to_the_step_that_is_known_in_closed_form():
    """1/2 ||x - y||^2 + l TV(x): each side moves by l over its width towards the other."""
    image = torch.zeros(1, 1, 1, 20, dtype=torch.float64)
    image[..., 8:] = 1.0
    run = solved(TV(), identity_problem(image), tv_strength=0.4, iterations=700, tolerance=0.0)
    assert torch.allclose(run.image[..., :8], torch.tensor(0.4 / 8, dtype=torch.float64), atol=1e-5)
    expected = torch.tensor(1 - 0.4 / 12, dtype=torch.float64)
    assert torch.allclose(run.image[..., 8:], expected, atol=1e-5)


def test_a_step_with_known_noise_is_lowered_until_the_residual_is_the_noise():
    """Both sides move by l / width; l is where (l/8)^2 8 + (l/12)^2 12 = sigma^2 20."""
    image = torch.zeros(1, 1, 1, 20, dtype=torch.float64)
    image[..., 8:] = 1.0
    sigma = 0.05
    run = solved(TV(), identity_problem(image, sigma), iterations=700, tolerance=0.0)
    shift = sigma * math.sqrt(20 / (1 / 8 + 1 / 12))
    assert float(run.image[0, 0, 0, 0]) == pytest.approx(shift / 8, abs=1e-5)
    assert float(run.image[0, 0, 0, -1]) == pytest.approx(1 - shift / 12, abs=1e-5)


def test_shrinking_is_the_proximal_map_of_the_l1_norm():
    c = torch.randn(3, 1, 2, 5, 5, generator=make_generator(0), dtype=torch.float64)
    for groups in ((2,), (0, 2)):
        z = shrink(c, 0.7, groups)

        def cost(v, groups=groups):
            return float((v - c).square().sum() / 2 + 0.7 * sizes(v, groups).sum())

        for seed in range(20):
            step = torch.randn(c.shape, generator=make_generator(seed), dtype=c.dtype)
            assert cost(z) <= cost(z + 1e-3 * step)
            assert cost(z) <= cost(z + step)
    assert shrink(c[:1, :, :1], 0.7, (2,)).flatten()[0] == pytest.approx(
        math.copysign(max(abs(float(c[0, 0, 0, 0, 0])) - 0.7, 0), float(c[0, 0, 0, 0, 0]))
    )


def orthogonal_matrix(n):
    """One level of the periodic Daubechies transform as a matrix: averages above details."""
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for row, taps in itertools.product(range(n // 2), (LOW_PASS, HIGH_PASS)):
        for i, c in enumerate(taps):
            matrix[row + (n // 2 if taps is HIGH_PASS else 0), (2 * row + i) % n] += c
    return matrix


def test_the_wavelets_are_orthogonal_and_ignore_straight_lines():
    matrix = orthogonal_matrix(16)
    assert torch.allclose(matrix @ matrix.T, torch.eye(16, dtype=torch.float64), atol=1e-12)
    details = matrix[8:] @ torch.arange(16, dtype=torch.float64)
    assert float(details[:-1].abs().max()) < 1e-12  # but where the line jumps back


def test_the_penalty_is_the_mean_over_all_shifts_of_the_orthogonal_transform():
    x = torch.randn(1, 1, 16, 16, generator=make_generator(0), dtype=torch.float64)
    first, second = orthogonal_matrix(16), orthogonal_matrix(8)
    total = 0.0
    for shift in itertools.product(range(4), range(4)):
        one = first @ torch.roll(x[0, 0], shift, (0, 1)) @ first.T
        two = second @ one[:8, :8] @ second.T
        total += float(one.abs().sum() - one[:8, :8].abs().sum())
        total += float(two.abs().sum() - two[:4, :4].abs().sum())
    own = sizes(Wavelets(2, x).apply(x), Wavelets.groups).sum()
    assert float(own) == pytest.approx(total / 16, rel=1e-10)


@pytest.mark.parametrize("shape", [(16, 16), (15, 22), (3, 40)])
def test_wavelets_can_be_taken_back_whatever_the_size(shape):
    """K^T is the adjoint, and with the averages that K leaves out nothing is lost."""
    x = torch.randn(2, 2, *shape, generator=make_generator(0), dtype=torch.float64)
    wavelets = Wavelets(3, x)
    c = wavelets.apply(x)
    other = torch.randn(c.shape, generator=make_generator(1), dtype=c.dtype)
    adjoint = float((wavelets.transpose(other) * x).sum())
    assert float((c * other).sum()) == pytest.approx(adjoint, rel=1e-10)
    torch.testing.assert_close(wavelets.transpose(c), wavelets.normal(x))
    weights = 4.0 ** (torch.arange(wavelets.levels).repeat_interleave(3) + 1).view(-1, 1, 1, 1, 1)
    details = wavelets.transpose(weights * c)
    spectrum = torch.fft.rfft2(x - details) / torch.fft.rfft2(x)
    averages = 1 - (weights * wavelets.bands.abs().square()).sum((0, 1, 2))
    torch.testing.assert_close(spectrum.real, averages.expand_as(spectrum.real))
    assert float(averages[0, 0]) == pytest.approx(1)
    assert float(averages.min()) > -1e-12


def test_the_gradients_transpose_is_its_adjoint():
    x = torch.randn(1, 2, 7, 9, generator=make_generator(0), dtype=torch.float64)
    c = Gradient(x).apply(x)
    assert float((c * c).sum()) == pytest.approx(float((Gradient(x).normal(x) * x).sum()))


@pytest.mark.parametrize("inside", [False, True])
def test_the_nearest_point_that_fits_lies_on_the_ellipsoid(inside):
    r = torch.randn(2, 1, 5, 6, generator=make_generator(0), dtype=torch.float64)
    w = torch.rand(r.shape, generator=make_generator(1), dtype=r.dtype) * 1000
    limit = torch.full((2, 1, 1, 1), 1e6 if inside else 0.3, dtype=r.dtype)
    found = multiplier(r, w, limit)
    if inside:
        assert float(found.abs().max()) == 0
    else:
        assert torch.allclose(weighted_norm(r / (1 + found * w), w), limit, rtol=1e-8)


def test_denoising_is_the_proximal_map_of_total_variation():
    noisy = blocks(24) + 0.2 * torch.randn(1, 1, 24, 24, generator=make_generator(3)).double()
    run = solved(TV(), identity_problem(noisy), tv_strength=0.3, iterations=500, tolerance=0.0)
    assert relative(run.image, tv_prox(noisy, 0.3, 3000)[0]) < 1e-4


def test_both_algorithms_find_the_same_optimum_of_a_weighted_problem():
    problem = dense_problem(seed=4, rows=80, size=8)
    problem.weights = torch.rand(problem.measurement.shape).double() + 0.2
    new = solved(TV(), problem, tv_strength=0.02, iterations=500, tolerance=0.0).image
    old = solved(TV(), problem, tv_strength=0.02, iterations=500, tv_method="fista").image
    assert relative(new, old) < 1e-4


def test_the_constrained_optimum_is_the_penalised_one_of_the_same_residual():
    """Independent of the projection: a bisection over penalties with the other algorithm."""
    problem = dense_problem(seed=5, rows=80, size=6, noise=0.3)
    found = solved(TV(), problem, iterations=600, tolerance=0.0).image
    low, high = 1e-4, 1.0
    for _ in range(11):
        middle = math.sqrt(low * high)
        x = solved(TV(), problem, tv_strength=middle, iterations=150, tv_method="fista").image
        low, high = (middle, high) if reduced(problem, x) < 1 else (low, middle)
    assert reduced(problem, found) == pytest.approx(1, abs=1e-4)
    assert relative(found, x) < 2e-3
    assert float(total_variation(found)) == pytest.approx(float(total_variation(x)), rel=2e-3)


@pytest.mark.parametrize("solver", [TV(), Wavelet()], ids=["tv", "wavelet"])
@pytest.mark.parametrize("make", [ct_problem, coil_problem])
def test_a_converged_image_fits_as_well_as_the_noise_and_stays_where_it_is(solver, make):
    problem = make()
    run = solved(solver, problem)
    assert run.last.k < 200
    assert run.record.verdicts["convergence"] == run.last.note
    assert run.last.note.startswith("Converged after")
    assert run.last.k == run.last.K
    assert reduced(problem, run.image) == pytest.approx(1, abs=0.01)
    far = solved(solver, problem, iterations=300, tolerance=0.0)
    assert relative(run.image, far.image) < 0.01
    assert "Not converged" in far.last.note  # it was told never to think so
    start = problem.operator.pseudo_inverse(problem.measurement)
    assert relative(run.image, problem.reference) < 0.6 * relative(start, problem.reference)


def test_too_few_iterations_are_owned_up_to():
    run = solved(TV(), ct_problem(), iterations=12)
    assert (run.last.k, run.last.K) == (12, 12)
    assert run.record.verdicts["convergence"].startswith("Not converged after 12 iterations")


def test_noise_smaller_than_the_misfit_is_owned_up_to():
    """More rows than pixels: no image comes nearer than the least squares."""
    problem = dense_problem(seed=6, rows=200, size=6, noise=0.3)
    problem.noise_sigma = 0.1
    note = solved(TV(), problem).last.note
    assert note.startswith("Not converged")
    assert "times that of the noise" in note


def test_without_a_noise_level_the_strength_is_the_default():
    problem = dense_problem(rows=80, size=6)
    automatic, given = solved(TV(), problem), solved(TV(), problem, tv_strength=1e-4)
    assert torch.equal(automatic.image, given.image)
    assert "noise" not in automatic.last.note


def test_a_slice_that_is_done_waits_for_the_others():
    one, two = ct_problem(), ct_problem(photons=3e6)
    both = Problem(
        one.operator,
        torch.cat([one.measurement, two.measurement]),
        one.intensity,
        "CT",
        noise_sigma=torch.tensor([one.noise_sigma, two.noise_sigma], dtype=torch.float64).view(
            2, 1, 1, 1
        ),
        weights=torch.cat([one.weights, two.weights]),
    )
    alone = [solved(TV(), problem) for problem in (one, two)]
    together = solved(TV(), both)
    assert together.last.k == max(run.last.k for run in alone)
    assert alone[0].last.k != alone[1].last.k
    for image, run in zip(together.image, alone, strict=True):
        assert relative(image, run.image[0]) < 1e-6


def test_settings_of_the_classes_agree_on_the_length():
    assert TVSettings().iterations == WaveletSettings().iterations == 200
