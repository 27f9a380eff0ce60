"""DDNM against its formula in plain numpy, and against its limit for a Gaussian prior."""

import itertools

import numpy as np
import pytest
import torch
from gaussian_modes import MEAN, SD, Draws, gaussian_prior
from helpers import FunctionPrior, dense_problem, relative

from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.problem import Problem
from engine.physics.random import make_generator
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.solvers.ddnm import Ddnm, DdnmSettings
from engine.solvers.solver import karras_sigmas

ETA = 0.85


def bend(x, sigma):
    """A denoiser that is neither linear nor odd, for torch and numpy alike."""
    return (x + 0.1 * sigma * x**2) / (1 + sigma**2)


def iterations(problem, prior, **settings):
    return list(Ddnm().iterate(problem, prior, DdnmSettings(**settings), make_generator(0)))


def ct_like(size=6):
    problem = dense_problem(seed=4, rows=30, size=size)
    problem.operator.matrix = problem.operator.matrix.abs()  # rays have positive lengths
    problem.measurement = problem.operator.forward(problem.reference)
    return problem


def single_coil(batch=1, size=8):
    operator = SingleCoilMRI(build_mask("fastmri", size, 2), (size, size))
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(batch, 2, size, size, generator=generator, dtype=torch.float64)
    return Problem(operator, operator.forward(x), IntensityMap("mr"), "MR", reference=x)


def zero_filled(problem, y):
    """A^H y written out with numpy: the sampled lines of the centred transform, back again."""
    lines = problem.operator.mask.sampled
    k = (y[:, 0] + 1j * y[:, 1]) * lines
    x = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(k, (-2, -1)), norm="ortho"), (-2, -1))
    return np.stack([x.real, x.imag], 1)


def seen_part(problem, x):
    """A^H A x."""
    z = np.fft.fft2(np.fft.ifftshift(x[:, 0] + 1j * x[:, 1], (-2, -1)), norm="ortho")
    z = np.fft.fftshift(z, (-2, -1))
    return zero_filled(problem, np.stack([z.real, z.imag], 1))


@pytest.mark.parametrize("eta", [0.0, ETA, 1.0])
def test_the_update_with_sirt_is_the_published_one(eta):
    """x0 = z - A^+(A z - y) with A^+ r = 7 SIRT steps from zero; the noise is the network's."""
    problem = ct_like()
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    sigmas, draw = [*karras_sigmas(4, 2, 0.002), 0.0], Draws((36,))

    def pseudo_inverse(r):
        x = np.zeros(36)
        for _ in range(7):
            x = x + a.T @ ((r - a @ x) / a.sum(1)) / a.sum(0)
        return x

    x = problem.operator.pseudo_inverse(problem.measurement).numpy().ravel() + 2 * draw()
    its = iterations(problem, FunctionPrior(bend), nfe=4, pinv_iterations=7, eta=eta)
    for i, it in enumerate(its):
        z = bend(x, sigmas[i])
        x0 = z - pseudo_inverse(a @ z - y)
        e = (x - z) / sigmas[i]
        x = x0 + sigmas[i + 1] * (eta * draw() + np.sqrt(1 - eta**2) * e)
        np.testing.assert_allclose(it.z.numpy().ravel(), z, atol=1e-10)
        np.testing.assert_allclose(it.image.numpy().ravel(), x0, atol=1e-10)
        assert (it.k, it.nfe, it.K) == (i + 1, i + 1, 4)
        assert float(it.residual_x) == pytest.approx(float(np.linalg.norm(a @ x0 - y)))
    np.testing.assert_allclose(its[-1].state["noisy"].numpy().ravel(), x0, atol=1e-10)


def test_one_coil_has_the_exact_inverse():
    """x0 = z - A^H(A z - y), and the answer fits the measurement to rounding."""
    problem = single_coil(batch=2)
    y = problem.measurement.numpy()
    for it in iterations(problem, FunctionPrior(bend, 2), nfe=4):
        z = it.z.numpy()
        expected = z - seen_part(problem, z) + zero_filled(problem, y)
        np.testing.assert_allclose(it.image.numpy(), expected, atol=1e-12)
        assert float(it.residual_x.max()) < 1e-12


def test_several_coils_have_the_moore_penrose_inverse():
    size = 6
    maps = birdcage_maps(3, size, size, dtype=torch.complex128)
    operator = MultiCoilMRI(build_mask("fastmri", size, 3), maps)
    n = 2 * size * size
    basis = torch.eye(n, dtype=torch.float64).view(n, 2, size, size)
    a = operator.forward(basis).reshape(n, -1).T.numpy()
    x = torch.randn(1, 2, size, size, generator=make_generator(3), dtype=torch.float64)
    problem = Problem(operator, operator.forward(x), IntensityMap("mr"), "MR")
    y = problem.measurement.numpy().ravel()
    inverse = np.linalg.pinv(a, rcond=1e-8)
    for it in iterations(problem, FunctionPrior(bend, 2), nfe=3, pinv_iterations=400):
        z = it.z.numpy().ravel()
        expected = z - inverse @ (a @ z - y)
        assert relative(it.x.flatten(), torch.from_numpy(expected)) < 1e-4


def test_without_fresh_noise_the_unseen_part_is_a_product_of_gains():
    """Prior N(m, s^2 I), eta = 0: what is measured is A^+ y at once and for good. The unseen
    part never meets the data: each step multiplies its distance from m by
    (s^2 + sigma sigma') / (s^2 + sigma^2). With ever more steps the product tends to
    s / sqrt(s^2 + sigma_max^2): a draw at sigma_max becomes a draw of the prior.
    """
    problem = single_coil()
    start = zero_filled(problem, problem.measurement.numpy()) + 2 * Draws((1, 2, 8, 8))()
    errors = []
    for nfe in (20, 300):
        sigmas = [*karras_sigmas(nfe, 2, 0.002), 0.0]
        gains = [(SD**2 + s * t) / (SD**2 + s**2) for s, t in itertools.pairwise(sigmas)]
        x = MEAN + np.prod(gains) * (start - MEAN)
        expected = x - seen_part(problem, x) + zero_filled(problem, problem.measurement.numpy())
        image = iterations(problem, gaussian_prior(2), nfe=nfe, eta=0.0)[-1].image
        np.testing.assert_allclose(image.numpy(), expected, atol=1e-12)
        errors.append(abs(np.prod(gains) * np.sqrt(SD**2 + 4) / SD - 1))
    assert errors[1] < 0.02
    assert errors[1] < 0.1 * errors[0]


def unseen_variance(nfe, eta):
    """Of the unseen part over all runs: v' = g^2 v + (eta sigma')^2."""
    sigmas, variance = [*karras_sigmas(nfe, 2, 0.002), 0.0], 4.0
    for now, then in itertools.pairwise(sigmas):
        gain = (SD**2 + np.sqrt(1 - eta**2) * now * then) / (SD**2 + now**2)
        variance = gain**2 * variance + (eta * then) ** 2
    return variance


def test_the_mean_is_the_posteriors_and_the_spread_is_too_small():
    """Prior N(m, s^2 I), no measurement noise: the posterior is A^+ y on what is measured and
    N(m, s^2) elsewhere. DDNM's mean tends to the posterior's; its unseen part has a variance
    that tends to s^2 (1 + sqrt(1 - eta^2)) / 2 with ever more steps: at eta = 0.85 it is 24 %
    too small. (Solve v = g^2 v + (eta sigma)^2 at a fixed small sigma.)
    """
    runs, nfe = 200, 100
    problem = single_coil()
    y = problem.measurement.numpy()
    problem.measurement = problem.measurement.expand(runs, -1, -1, -1)
    images = iterations(problem, gaussian_prior(2), nfe=nfe, eta=ETA)[-1].image.numpy()
    prior_mean = np.full((1, 2, 8, 8), MEAN)
    posterior = prior_mean - seen_part(problem, prior_mean) + zero_filled(problem, y)
    unseen = images - seen_part(problem, images)
    freedom = 128 - round(128 * problem.operator.mask.sampled.mean())
    variance = unseen.var(0, ddof=1).sum() / freedom
    assert np.abs(images.mean(0) - posterior).max() < 5 * SD / np.sqrt(runs)
    spread = np.sqrt(2 / (freedom * runs))  # relative standard error of a variance
    assert variance == pytest.approx(unseen_variance(nfe, ETA), rel=4 * spread)

    limit = SD**2 * (1 + np.sqrt(1 - ETA**2)) / 2
    assert limit < 0.77 * SD**2
    assert unseen_variance(20_000, ETA) == pytest.approx(limit, rel=1e-3)


def test_homogenized_renoising_fills_the_spectrum_of_the_data_steps_change():
    """x' = x0 + noise of the power max(1e-6 T, T - S), T = sigma'^2 HW, where S is |F(x0 - z)|^2
    averaged over 7 x 7 bins around each, written with shifted copies.
    """
    problem = ct_like(size=12)
    its = iterations(problem, FunctionPrior(bend), nfe=3, renoising="sh")
    draw, sigmas = Draws((12, 12)), karras_sigmas(3, 2, 0.002)
    start = problem.operator.pseudo_inverse(problem.measurement).numpy()[0, 0] + 2 * draw()
    np.testing.assert_allclose(its[0].z.numpy()[0, 0], bend(start, 2), atol=1e-12)
    for it, following, sigma in zip(its, its[1:], sigmas[1:], strict=False):
        clean, z = it.x.numpy()[0, 0], it.z.numpy()[0, 0]
        power, target = np.abs(np.fft.fft2(clean - z)) ** 2, sigma**2 * 144
        shifts = [(i, j) for i in range(-3, 4) for j in range(-3, 4)]
        smooth = sum(np.roll(power, shift, (0, 1)) for shift in shifts) / 49
        missing = np.maximum(1e-6 * target, target - smooth)
        xi = np.fft.ifft2(np.sqrt(missing) * np.fft.fft2(draw()) / 12).real
        np.testing.assert_allclose(it.state["noisy"].numpy()[0, 0], clean + xi, atol=1e-10)
        np.testing.assert_allclose(following.z.numpy()[0, 0], bend(clean + xi, sigma), atol=1e-10)
        np.testing.assert_allclose(
            following.noise["homogenized"].numpy()[0, 0], clean + xi - z, atol=1e-10
        )
    assert torch.equal(its[-1].state["noisy"], its[-1].x), "nothing is added at noise level zero"
