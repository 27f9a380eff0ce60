"""DDS against its formula in plain numpy, and against its limit for a Gaussian prior."""

import numpy as np
import pytest
import torch
from gaussian_modes import MEAN, Draws, gaussian_prior, posterior_mean, shrinking, silence
from helpers import FunctionPrior, dense_problem

from engine.physics.random import make_generator
from engine.solvers.dds import Dds, DdsSettings
from engine.solvers.solver import karras_sigmas

ETA, NOISE = 0.85, 0.2


def bend(x, sigma):
    return (x + 0.1 * sigma * x**2) / (1 + sigma**2)


def iterations(problem, prior, **settings):
    return list(Dds().iterate(problem, prior, DdsSettings(**settings), make_generator(0)))


def textbook_cg(matrix, rhs, x, steps):
    """Hestenes and Stiefel, as a textbook prints it."""
    r = rhs - matrix @ x
    p = r
    for _ in range(steps):
        alpha = r @ r / (p @ matrix @ p)
        x, r_new = x + alpha * p, r - alpha * (matrix @ p)
        p, r = r_new + (r_new @ r_new) / (r @ r) * p, r_new
    return x


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("steps", [2, 5])
def test_the_update_is_the_published_one(noise, steps):
    """K steps of CG from z on A^T A x = A^T y, or on (I + g A^T A) x = z + g A^T y with noise;
    dividing the latter by g changes neither its solution nor its CG iterates.
    """
    problem, gamma = dense_problem(seed=1, rows=50, noise=noise), 0.8
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    sigmas, draw = [*karras_sigmas(4, 2, 0.002), 0.0], Draws((36,))
    x = problem.operator.pseudo_inverse(problem.measurement).numpy().ravel() + 2 * draw()
    its = iterations(
        problem, FunctionPrior(bend), nfe=4, dds_iterations=steps, gamma=gamma, eta=ETA
    )
    for i, it in enumerate(its):
        z = bend(x, sigmas[i])
        matrix, rhs = a.T @ a, a.T @ y
        if noise:
            matrix, rhs = np.eye(36) + gamma * matrix, z + gamma * rhs
        x0 = textbook_cg(matrix, rhs, z, steps)
        x = x0 + sigmas[i + 1] * (ETA * draw() + np.sqrt(1 - ETA**2) * (x - z) / sigmas[i])
        np.testing.assert_allclose(it.image.numpy().ravel(), x0, atol=1e-8)
        assert float(it.gap) == pytest.approx(float(np.linalg.norm(x0 - z)), rel=1e-6)
        assert (it.k, it.nfe, it.K) == (i + 1, i + 1, 4)


def modes(problem):
    """Singular values, all right vectors (as columns) and the measurement along the left ones."""
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    u, s, vt = np.linalg.svd(a)
    padding = a.shape[1] - len(s)
    return np.pad(s, (0, padding)), vt.T, np.pad(u.T @ y, (0, padding))


def test_with_a_gaussian_prior_every_singular_vector_is_a_scalar_recursion(monkeypatch):
    """Prior N(m, s^2 I), CG converged: along a singular vector of value a,
    x0 = (z + g a y) / (1 + g a^2) and everything else is a product.
    """
    problem, gamma = dense_problem(seed=5, rows=20, noise=NOISE), 1.5
    value, vectors, y = modes(problem)
    m = vectors.T @ np.full(36, MEAN)
    x = vectors.T @ problem.operator.pseudo_inverse(problem.measurement).numpy().ravel()
    silence(monkeypatch, "engine.solvers.ddim")
    sigmas = [*karras_sigmas(12, 2, 0.002), 0.0]
    its = iterations(problem, gaussian_prior(), nfe=12, dds_iterations=60, gamma=gamma)
    for it, now, then in zip(its, sigmas, sigmas[1:], strict=False):
        z = m + shrinking(now) * (x - m)
        x0 = (z + gamma * value * y) / (1 + gamma * value**2)
        x = x0 + then * np.sqrt(1 - ETA**2) * (x - z) / now
        np.testing.assert_allclose(it.image.numpy().ravel(), vectors @ x0, atol=1e-5)


def test_more_steps_lead_to_least_squares_and_not_to_the_posterior_mean(monkeypatch):
    """The coupling 1 / gamma does not grow as the noise level falls, and at low noise the
    denoiser hardly moves the image: every step pulls it towards the data by 1 / (1 + g a^2). In
    the limit of many steps what is measured is fitted exactly, noise and all, and what is not
    has the prior's mean: A^+ y + (1 - A^+ A) m, whatever gamma.
    """
    problem = dense_problem(seed=5, rows=20, noise=NOISE)
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    inverse = np.linalg.pinv(a)
    limit = inverse @ y + MEAN * (np.ones(36) - inverse @ (a @ np.ones(36)))
    silence(monkeypatch, "engine.solvers.ddim")
    errors = {}
    for gamma, nfe in ((1.0, 30), (1.0, 300), (4.0, 300)):
        image = iterations(problem, gaussian_prior(), nfe=nfe, dds_iterations=40, gamma=gamma)[
            -1
        ].image
        errors[gamma, nfe] = np.linalg.norm(image.numpy().ravel() - limit) / np.linalg.norm(limit)
    assert max(errors[1.0, 300], errors[4.0, 300]) < 1e-3
    assert errors[1.0, 30] > 10 * errors[1.0, 300]
    bayes = posterior_mean(a, y, NOISE)
    assert np.linalg.norm(limit - bayes) / np.linalg.norm(bayes) > 0.05


def test_without_noise_converged_steps_fit_the_measurement_exactly():
    """A^T A x = A^T y from z is the nearest image to z that fits: z - A^+(A z - y)."""
    problem = dense_problem(seed=5, rows=20)
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    for it in iterations(problem, gaussian_prior(), nfe=3, dds_iterations=60):
        z = it.z.numpy().ravel()
        expected = z - np.linalg.pinv(a) @ (a @ z - y)
        np.testing.assert_allclose(it.image.numpy().ravel(), expected, atol=1e-4)
        assert float(it.residual_x) < 1e-4


def test_whether_a_slice_has_noise_is_its_own_affair():
    both = dense_problem(seed=5, rows=20, batch=2)
    both.noise_sigma = torch.tensor([0.0, NOISE], dtype=torch.float64).view(-1, 1, 1, 1)
    together = iterations(both, gaussian_prior(), nfe=1)[0]
    for i in range(2):
        alone = dense_problem(seed=5, rows=20, batch=2)
        alone.noise_sigma = float(both.noise_sigma[i])
        one = iterations(alone, gaussian_prior(), nfe=1)[0]
        torch.testing.assert_close(together.image[i], one.image[i])
    assert not torch.allclose(
        together.image[1],
        iterations(dense_problem(seed=5, rows=20, batch=2), gaussian_prior(), nfe=1)[0].image[1],
    )
