"""With a Gaussian prior and linear data the answer is known: the posterior mean."""

import pytest
import torch
from helpers import dense_problem, relative

from engine.physics.random import make_generator
from engine.physics.units import IntensityMap
from engine.priors.analytic import GaussianPrior
from engine.solvers.dc_pnpdp import DcPnpdp, DcPnpdpSettings

NOISE = 0.2


@pytest.fixture
def problem():
    return dense_problem(seed=5, rows=20, size=6, noise=NOISE)


@pytest.fixture
def prior():
    return GaussianPrior(IntensityMap("hu", 1000.0), 1, mean=0.3, variance=0.7, corner=0.2)


def posterior_mean(problem, prior):
    """Dense solve with the covariance C = F^H S F written out as a matrix."""
    a, n = problem.operator.matrix, problem.operator.matrix.shape[1]
    size = problem.reference.shape[-1]
    basis = torch.eye(n, dtype=torch.float64).view(n, 1, size, size)
    s = prior.spectrum(basis)
    precision = torch.fft.ifft2(torch.fft.fft2(basis) / s).real.view(n, n)
    y = problem.measurement.flatten() - prior.mean * a.sum(1)
    x = torch.linalg.solve(a.T @ a / NOISE**2 + precision, a.T @ y / NOISE**2)
    return (x + prior.mean).view_as(problem.reference)


def solve(problem, prior, **changes):
    settings = DcPnpdpSettings(
        rho_over_sigma2=NOISE**2, cg_iterations=60, cg_tolerance=1e-13, **changes
    )
    for iteration in DcPnpdp().iterate(problem, prior, settings, make_generator(1)):
        image = iteration.image
    return image


def test_constant_noise_level_reaches_the_posterior_mean(problem, prior):
    image = solve(problem, prior, nfe=400, sigma_max=0.4, sigma_min=0.4, injection="none")
    assert relative(image, posterior_mean(problem, prior)) < 1e-6


def test_falling_noise_level_approaches_the_posterior_mean(problem, prior):
    """rho = sigma_y^2 / sigma^2 keeps the fixed point in place while sigma falls."""
    expected = posterior_mean(problem, prior)
    errors = [
        relative(
            solve(problem, prior, nfe=nfe, sigma_max=2.0, sigma_min=0.05, injection="none"),
            expected,
        )
        for nfe in (100, 400)
    ]
    assert errors[0] < 5e-3
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize(("paired", "spread"), [(0.0, 0.1), (9.0, 0.05)])
def test_homogenization_keeps_the_posterior_mean_on_average(problem, prior, paired, spread):
    """The injected noise has mean zero and every step is affine, so the mean over runs holds."""
    runs, expected = 256, posterior_mean(problem, prior)
    problem.measurement = problem.measurement.expand(runs, -1, -1, -1)
    images = solve(problem, prior, nfe=60, sigma_max=2.0, sigma_min=0.05, paired_below=paired)
    bare = solve(problem, prior, nfe=60, sigma_max=2.0, sigma_min=0.05, injection="none")
    standard_error = images.std(0).norm() / runs**0.5
    assert float(images.std(0).norm()) > spread * float(expected.norm()), "runs do differ"
    assert float((images.mean(0) - bare[0]).norm()) < 1.5 * float(standard_error)
    assert relative(images.mean(0), expected[0]) < 0.05


def test_without_the_dual_the_posterior_mean_is_missed(problem, prior):
    image = solve(
        problem, prior, nfe=400, sigma_max=0.4, sigma_min=0.4, injection="none", dual=False
    )
    assert relative(image, posterior_mean(problem, prior)) > 0.01


def test_the_denoiser_is_the_posterior_mean_of_pure_denoising(prior):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 1, 8, 8, generator=generator, dtype=torch.float64)
    sigma, n = 0.6, 64
    basis = torch.eye(n, dtype=torch.float64).view(n, 1, 8, 8)
    covariance = torch.fft.ifft2(torch.fft.fft2(basis) * prior.spectrum(basis)).real.view(n, n)
    gain = covariance @ torch.linalg.inv(covariance + sigma**2 * torch.eye(n).double())
    expected = prior.mean + (x.view(2, n) - prior.mean) @ gain.T
    torch.testing.assert_close(prior(x, sigma).view(2, n), expected)
