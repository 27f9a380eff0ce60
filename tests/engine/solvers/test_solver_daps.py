"""DAPS against its formula in plain numpy, its limits for a Gaussian prior, and its step size."""

import numpy as np
import pytest
import torch
from gaussian_modes import MEAN, SD, Draws, gaussian_prior, posterior_mean, shrinking, silence
from helpers import FunctionPrior, dense_problem

from engine.physics.random import make_generator
from engine.solvers.daps import AUTO_STEP, AUTO_TAU_SHARE, Daps, DapsSettings, flow_to_clean
from engine.solvers.solver import karras_sigmas
from engine.spec.errors import RequestError

TAU = 0.3


def bend(x, sigma):
    return (x + 0.1 * sigma * x**2) / (1 + sigma**2)


def iterations(problem, prior, **settings):
    return list(Daps().iterate(problem, prior, DapsSettings(**settings), make_generator(0)))


@pytest.mark.parametrize("ode_steps", [1, 3])
def test_the_update_is_the_published_one(ode_steps):
    problem = dense_problem(seed=1, noise=0.1)
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    draw, first, decay, levels = Draws((36,)), 2e-4, 0.2, 4
    sigmas = [*karras_sigmas(levels, 2, 0.05), 0.0]
    x = problem.operator.pseudo_inverse(problem.measurement).numpy().ravel() + 2 * draw()
    its = iterations(
        problem,
        FunctionPrior(bend),
        nfe=levels * ode_steps,
        sigma_min=0.05,
        ode_steps=ode_steps,
        langevin_steps=6,
        langevin_step=first,
        langevin_decay=decay,
        tau=TAU,
    )
    assert len(its) == levels
    for k, it in enumerate(its):
        end = min(0.01, sigmas[k] / 10)
        flow, x0 = [*karras_sigmas(ode_steps, sigmas[k], end), 0.0], x
        for j in range(ode_steps):
            x0 = x0 + (flow[j + 1] - flow[j]) * (x0 - bend(x0, flow[j])) / flow[j]
        size, u = first * (1 + k / levels * (decay - 1)), x0
        for _ in range(6):
            slope = (u - x0) / sigmas[k] ** 2 + a.T @ (a @ u - y) / TAU**2
            u = u - size * slope + np.sqrt(2 * size) * draw()
        x = u + sigmas[k + 1] * draw()
        np.testing.assert_allclose(it.z.numpy().ravel(), x0, atol=1e-10)
        np.testing.assert_allclose(it.image.numpy().ravel(), u, atol=1e-10)
        assert (it.k, it.K, it.nfe) == (k + 1, levels, (k + 1) * ode_steps)


def recursion(problem, sigmas, langevin_steps, weight, share=AUTO_STEP):
    """Mean and variance of the answer over all runs, along each singular vector.

    With curvature L = 1/sigma^2 + a^2/tau^2 and q = 1 - step L, K Langevin steps give the mean
    mu + q^K (x0 - mu) and add the variance 2 step (1 - q^2K) / (1 - q^2).
    """
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    u, s, vt = np.linalg.svd(a)
    value, along = (np.pad(v, (0, a.shape[1] - len(s))) for v in (s, u.T @ y))
    m = vt @ np.full(a.shape[1], MEAN)
    mean = vt @ problem.operator.pseudo_inverse(problem.measurement).numpy()[0].ravel()
    variance = np.full(len(m), sigmas[0] ** 2)
    for now, then in zip(sigmas, [*sigmas[1:], 0.0], strict=True):
        w, curvature = weight(now), 1 / now**2 + (value / TAU) ** 2
        step = share / (1.02 * s.max() ** 2 / TAU**2 + 1 / now**2)
        q = 1 - step * curvature
        x0 = m + w * (mean - m)
        mu = (x0 / now**2 + value * along / TAU**2) / curvature
        mean = mu + q**langevin_steps * (x0 - mu)
        kept = (1 - q**langevin_steps) / (now**2 * curvature) + q**langevin_steps
        answer = (kept * w) ** 2 * variance + 2 * step * (1 - q ** (2 * langevin_steps)) / (
            1 - q**2
        )
        variance = answer + then**2
    return vt.T @ mean, answer


def test_with_a_gaussian_prior_the_mean_follows_the_langevin_recursion(monkeypatch):
    problem = dense_problem(seed=5, rows=20, noise=TAU)
    silence(monkeypatch, "engine.solvers.daps")
    for steps in (3, 40):
        expected, _ = recursion(problem, karras_sigmas(15, 2, 0.002), steps, shrinking)
        image = iterations(problem, gaussian_prior(), nfe=15, langevin_steps=steps, tau=TAU)[-1].x
        np.testing.assert_allclose(image.numpy().ravel(), expected, atol=1e-9)


def settled_variance(problem, weight, share, steps):
    """Of the answer along each singular vector, with so many levels that it has settled."""
    return recursion(problem, karras_sigmas(20_000, 2, 1e-3), steps, weight, share)[1]


def test_one_denoising_per_level_tends_to_the_posterior(monkeypatch):
    """Prior N(m, s^2 I), Tweedie (ode_steps 1), tau = sigma_y: at a small fixed sigma the mean
    settles where x0 = mean, which is the posterior mean, and the variance solves
    v (1 - f^2 w^2) = 2 sigma^2 with f w = 1 - sigma^2 (a^2/tau^2 + 1/s^2): the posterior
    variance. Both are limits of many levels. Langevin steps of the size c / curvature are
    themselves too wide by 2 / (2 - c), which makes the variance (4 - c) / (4 - 2c) as large.
    """
    problem = dense_problem(seed=5, rows=20, noise=TAU)
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    expected = posterior_mean(a, y, TAU)
    variances = 1 / (1 / SD**2 + (np.pad(np.linalg.svd(a)[1], (0, 16)) / TAU) ** 2)
    fine = settled_variance(problem, shrinking, 0.01, 2000)
    np.testing.assert_allclose(fine, variances, rtol=0.01)
    wider = (4 - AUTO_STEP) / (4 - 2 * AUTO_STEP)
    coarse = settled_variance(problem, shrinking, AUTO_STEP, 200)
    np.testing.assert_allclose(coarse, wider * variances, rtol=0.01)

    silence(monkeypatch, "engine.solvers.daps")
    errors = []
    for nfe in (40, 400):
        image = iterations(problem, gaussian_prior(), nfe=nfe, langevin_steps=30, tau=TAU)[-1].x
        errors.append(np.linalg.norm(image.numpy().ravel() - expected) / np.linalg.norm(expected))
    assert errors[1] < 2e-3
    assert errors[1] < 0.3 * errors[0]


def test_many_flow_steps_tend_to_the_posterior_of_a_prior_with_twice_the_variance(monkeypatch):
    """The flow of N(m, s^2 I) ends at m + s / sqrt(s^2 + sigma^2) (x - m). It shrinks half as
    much as the denoiser, so that over many levels the prior counts half: N(m, 2 s^2 I).
    """
    x = torch.tensor([1.7], dtype=torch.float64)
    flowed = float(flow_to_clean(gaussian_prior(), x, 0.8, 4000))
    assert flowed == pytest.approx(MEAN + SD / np.sqrt(SD**2 + 0.64) * (1.7 - MEAN), rel=1e-3)

    problem = dense_problem(seed=5, rows=20, noise=TAU)
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()

    def exact(sigma):
        return SD / np.sqrt(SD**2 + sigma**2)

    limit = posterior_mean(a, y, TAU, sd=SD * 2**0.5)
    values = np.pad(np.linalg.svd(a)[1], (0, 16))
    mean, _ = recursion(problem, karras_sigmas(20_000, 2, 1e-3), 200, exact)
    np.testing.assert_allclose(mean, limit, atol=2e-3)
    variance = settled_variance(problem, exact, 0.01, 2000)
    np.testing.assert_allclose(variance, 1 / (0.5 / SD**2 + (values / TAU) ** 2), rtol=0.01)

    silence(monkeypatch, "engine.solvers.daps")
    settings = {"nfe": 12 * 200, "ode_steps": 12, "langevin_steps": 30, "tau": TAU}
    image = iterations(problem, gaussian_prior(), **settings)[-1].x.numpy().ravel()
    near, far = (np.linalg.norm(image - one) for one in (limit, posterior_mean(a, y, TAU)))
    assert near < 0.5 * far


def test_the_spread_over_runs_is_that_of_the_recursion():
    runs, steps = 1500, 5
    problem = dense_problem(seed=5, rows=20, noise=TAU)
    mean, variances = recursion(problem, karras_sigmas(30, 2, 0.002), steps, shrinking)
    vt = np.linalg.svd(problem.operator.matrix.numpy())[2]
    problem.measurement = problem.measurement.expand(runs, -1, -1, -1)
    images = iterations(problem, gaussian_prior(), nfe=30, langevin_steps=steps, tau=TAU)[-1].x
    samples = images.numpy().reshape(runs, 36) @ vt.T
    assert np.abs(samples.mean(0) - vt @ mean).max() < 5 * np.sqrt(variances.max() / runs)
    np.testing.assert_allclose(samples.var(0, ddof=1), variances, rtol=5 * np.sqrt(2 / runs))


def counting(calls):
    def denoise(x, sigma):
        calls.append(sigma)
        return x / (1 + sigma**2)

    return FunctionPrior(denoise)


@pytest.mark.parametrize(("nfe", "ode_steps", "levels"), [(10, 5, 2), (23, 5, 4), (7, 1, 7)])
def test_every_denoiser_call_counts_and_the_budget_is_kept(nfe, ode_steps, levels):
    calls = []
    its = iterations(
        dense_problem(), counting(calls), nfe=nfe, ode_steps=ode_steps, langevin_steps=1
    )
    assert len(its) == levels
    assert its[-1].nfe == len(calls) == levels * ode_steps <= nfe
    assert [it.nfe for it in its] == [ode_steps * (k + 1) for k in range(levels)]


def test_a_budget_below_one_level_is_refused():
    with pytest.raises(RequestError, match=r"--nfe .* --ode-steps"):
        DapsSettings(nfe=4, ode_steps=5)


@pytest.mark.parametrize("tau", [0.05, 0.5])
def test_a_step_that_would_diverge_is_refused_before_the_run(tau):
    """The bound is sharp: a little above it the linear iteration really grows."""
    problem, calls = dense_problem(noise=0.1), []
    problem.weights = torch.ones_like(problem.measurement)
    problem.weights[..., ::2] = 3.0
    root = problem.weights.flatten()[:, None].sqrt() * problem.operator.matrix
    norm2, weighted = problem.operator.norm() ** 2, float(torch.linalg.matrix_norm(root, 2)) ** 2
    limit = 2 / (3 * norm2 / tau**2 + 1 / 0.1**2)
    settings = {"nfe": 3, "sigma_min": 0.1, "tau": tau, "langevin_decay": 1.0}
    with pytest.raises(RequestError, match=r"--langevin-step .* \(at noise level 0\.1\)"):
        iterations(problem, counting(calls), langevin_step=1.01 * limit, **settings)
    assert calls == []
    its = iterations(problem, counting(calls), langevin_step=0.97 * limit, **settings)
    assert float(its[-1].image.abs().max()) < 100

    certain = 2.05 / (weighted / tau**2 + 1 / 0.1**2)  # beyond the true curvature
    growth = 1 - certain * (weighted / tau**2 + 1 / 0.1**2)
    assert abs(growth) > 1
    with pytest.raises(RequestError, match="--langevin-step"):
        iterations(problem, counting(calls), langevin_step=certain, **settings)


def test_the_automatic_step_is_stable_at_any_scale_of_the_operator():
    """In other units of length A and y grow alike, and the image stays what it was."""
    images = []
    for scale in (1.0, 1000.0):
        problem = dense_problem(noise=0.0)
        problem.operator.matrix = scale * problem.operator.matrix
        problem.measurement = scale * problem.measurement
        settings = {"nfe": 20, "init": "zeros"}
        images.append(iterations(problem, counting([]), **settings)[-1].image)
    torch.testing.assert_close(images[0], images[1], rtol=1e-6, atol=1e-6)


def test_tau_without_a_rule_is_the_noise_and_a_share_of_the_norm():
    problem = dense_problem(noise=0.3)
    tau = (0.3**2 + AUTO_TAU_SHARE * problem.operator.norm() ** 2) ** 0.5
    automatic, given = (
        iterations(problem, counting([]), nfe=3, langevin_steps=4, tau=value)[-1].image
        for value in (None, tau)
    )
    torch.testing.assert_close(automatic, given)
