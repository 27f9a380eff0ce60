"""SITCOM against an independent statement of its update, its limits, its budget and its memory."""

import math

import numpy as np
import pytest
import torch
from helpers import FunctionPrior, dense_problem, relative

from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI
from engine.physics.problem import Problem
from engine.physics.random import make_generator
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.priors.analytic import GaussianPrior
from engine.priors.catalogue import load_prior
from engine.runs.run import Run
from engine.solvers import sitcom
from engine.solvers.catalogue import SOLVERS
from engine.solvers.presets import apply_preset
from engine.solvers.sitcom import Sitcom, SitcomSettings, backward_bytes
from engine.solvers.solver import Resume, karras_sigmas
from engine.spec.errors import RequestError


def gaussian_prior():
    return GaussianPrior(IntensityMap("hu", 1000.0), 1, mean=0.3, variance=0.7, corner=0.2)


def all_of(problem, prior, settings, seed=0, resume=None):
    return list(Sitcom().iterate(problem, prior, settings, make_generator(seed), resume))


def gain(prior, size, sigma):
    """The Wiener filter as a matrix: D(v) = mean + G (v - mean), so its Jacobian is G."""
    n = size * size
    fourier = np.fft.fft2(np.eye(n).reshape(n, size, size), norm="ortho").reshape(n, n)
    spectrum = prior.spectrum(torch.zeros(1, 1, size, size, dtype=torch.float64)).numpy().ravel()
    return (fourier.conj() @ np.diag(spectrum / (spectrum + sigma**2)) @ fourier.T).real


def test_it_is_adam_on_the_denoisers_input():
    problem, prior = dense_problem(seed=3, size=6, rows=20), gaussian_prior()
    problem.weights = 0.5 + torch.rand(
        problem.measurement.shape, generator=make_generator(4), dtype=torch.float64
    )
    settings = SitcomSettings(nfe=12, inner_steps=3, learning_rate=0.05, proximity=0.2)
    a, y = problem.operator.matrix.numpy(), problem.measurement.numpy().ravel()
    w, mean, draws = problem.weights.numpy().ravel(), prior.mean, make_generator(0)

    def normal():
        return torch.randn(1, 1, 6, 6, generator=draws, dtype=torch.float64).numpy().ravel()

    sigmas = [*karras_sigmas(3, 2.0, 0.002), 0.0]
    x = problem.operator.pseudo_inverse(problem.measurement).numpy().ravel() + 2 * normal()
    iterations = all_of(problem, prior, settings)
    assert len(iterations) == 3
    for k, it in enumerate(iterations):
        g = gain(prior, 6, sigmas[k])
        v, first, second = x.copy(), np.zeros(36), np.zeros(36)
        for step in range(1, 4):
            residual = a @ (mean + g @ (v - mean)) - y
            slope = 2 * g.T @ a.T @ (w * residual) + 2 * 0.2 * (v - x)
            first = 0.9 * first + 0.1 * slope
            second = 0.999 * second + 0.001 * slope**2
            unbiased = (first / (1 - 0.9**step), second / (1 - 0.999**step))
            rate = 0.05 * math.sqrt(1 + sigmas[k] ** 2)
            v = v - rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
        before, clean = mean + g @ (x - mean), mean + g @ (v - mean)
        np.testing.assert_allclose(it.z.numpy().ravel(), before, atol=1e-10)
        np.testing.assert_allclose(it.image.numpy().ravel(), clean, atol=1e-9)
        x = clean + sigmas[k + 1] * normal()
        assert float(it.residual_x) == pytest.approx(np.linalg.norm(a @ clean - y))


def test_with_a_gaussian_prior_the_converged_step_is_a_linear_solve():
    """min ||A D(v) - y||^2 + c ||v - x||^2 has the normal equations of the matrix A G."""
    problem, prior = dense_problem(seed=3, size=5, rows=12), gaussian_prior()
    settings = SitcomSettings(
        nfe=1501, inner_steps=1500, learning_rate=0.02, proximity=0.3, sigma_max=0.8
    )
    draws = make_generator(0)
    start = problem.operator.pseudo_inverse(problem.measurement)
    noise = torch.randn(start.shape, generator=draws, dtype=torch.float64)
    x = (start + 0.8 * noise).numpy().ravel()
    g, a = gain(prior, 5, 0.8), problem.operator.matrix.numpy()
    y = problem.measurement.numpy().ravel() - a @ (prior.mean - g @ np.full(25, prior.mean))
    b = a @ g
    v = np.linalg.solve(b.T @ b + 0.3 * np.eye(25), b.T @ y + 0.3 * x)
    expected = prior.mean + g @ (v - prior.mean)
    (it,) = all_of(problem, prior, settings)
    np.testing.assert_allclose(it.image.numpy().ravel(), expected, atol=1e-6)


def test_without_penalty_the_limit_is_least_squares_whatever_the_prior():
    """An invertible denoiser can reach every image, so that only the data decides."""
    problem = dense_problem(seed=2, size=4, rows=60, noise=0.3)
    problem.noise_sigma = 0.0
    a, y = problem.operator.matrix, problem.measurement.flatten()
    expected = torch.linalg.lstsq(a, y).solution
    settings = SitcomSettings(nfe=1001, inner_steps=1000, learning_rate=0.05, sigma_max=0.2)
    for prior in (gaussian_prior(), FunctionPrior(lambda x, sigma: 0.5 * x + 2.0)):
        (it,) = all_of(problem, prior, settings)
        assert relative(it.image.flatten(), expected) < 1e-4


@pytest.mark.parametrize("sigma", [0.5, 80.0])
@pytest.mark.parametrize(
    ("modality", "inner", "rate"), [("CT", 10, 0.02), ("MR", 10, 0.004), ("MR", 4, 0.01)]
)
def test_the_step_is_in_the_units_of_a_variance_preserving_model(sigma, modality, inner, rate):
    """Adam's first step moves every pixel by its rate, here sqrt(1 + sigma^2) times as far.

    Ten steps have the published rate; fewer go as far together.
    """
    inputs = []

    def denoise(x, sigma):
        inputs.append(x.detach().clone())
        return 0.7 * x

    problem = dense_problem(size=4)
    problem.modality = modality
    settings = SitcomSettings(nfe=inner + 1, inner_steps=inner, sigma_max=sigma)
    all_of(problem, FunctionPrior(denoise), settings)
    _measured_memory, start, second, *_ = inputs
    moved = (second - start).abs()
    expected = torch.full_like(moved, rate * math.sqrt(1 + sigma**2))
    torch.testing.assert_close(moved, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("nfe", "inner", "levels"), [(50, 4, 10), (23, 4, 4), (22, 10, 2)])
def test_every_denoiser_call_is_counted(nfe, inner, levels):
    calls = 0

    def denoise(x, sigma):
        nonlocal calls
        calls += 1
        return 0.9 * x

    settings = SitcomSettings(nfe=nfe, inner_steps=inner)
    iterations = all_of(dense_problem(size=4), FunctionPrior(denoise), settings)
    assert len(iterations) == levels
    assert [it.nfe for it in iterations] == [(k + 1) * (inner + 1) for k in range(levels)]
    assert calls == iterations[-1].nfe + 1, "one more to measure the memory, before it starts"


def test_it_stops_at_the_noise_and_counts_only_what_it_used():
    noisy = dense_problem(size=4, rows=30, noise=0.5)
    settings = SitcomSettings(nfe=60, inner_steps=19, learning_rate=0.2, sigma_max=0.5)
    prior = FunctionPrior(lambda x, sigma: 0.9 * x)
    its = all_of(noisy, prior, settings)
    assert its[-1].nfe < 40
    assert float(its[-1].residual_x) < 0.5 * math.sqrt(30)
    never = all_of(noisy, prior, SitcomSettings(**settings.to_dict() | {"stop_at_noise": False}))
    assert never[-1].nfe == 60
    assert float(never[-1].residual_x) < float(its[-1].residual_x)
    rest = all_of_after(noisy, prior, settings, 1)
    assert rest[-1].nfe == its[-1].nfe


def all_of_after(problem, prior, settings, k):
    """Run k iterations, then go on from their state alone."""
    generator = make_generator(0)
    steps = Sitcom().iterate(problem, prior, settings, generator)
    state = [next(steps) for _ in range(k)][-1].state
    return list(Sitcom().iterate(problem, prior, settings, generator, Resume(k, state)))


def test_repeated_and_resumed_runs_are_the_same_bits():
    problem, prior = dense_problem(seed=3, batch=2), gaussian_prior()
    settings = SitcomSettings(nfe=24, inner_steps=3)
    with torch.no_grad():  # as in a run
        whole, again = (all_of(problem, prior, settings)[-1] for _ in range(2))
        rest = all_of_after(problem, prior, settings, 3)
    assert len(rest) == 3
    assert torch.equal(whole.image, again.image)
    assert torch.equal(whole.image, rest[-1].image)
    assert not whole.image.requires_grad


def multi_coil_problem(slices):
    """Every slice has its own sensitivities, which a slice by slice method must not mix up."""
    height, width = 12, 14
    maps = torch.stack([birdcage_maps(3, height, width) * (1 + n) for n in (0, 1)])
    operator = MultiCoilMRI(build_mask("equispaced", width, 2), maps[list(slices)])
    x = torch.randn(2, 2, height, width, generator=make_generator(1))[list(slices)]
    y = operator.forward(x)
    return Problem(operator, y, IntensityMap("mr"), "MR", reference=x, slices=slices)


def test_a_slice_does_not_depend_on_its_batch():
    prior = FunctionPrior(lambda x, sigma: x / (1 + sigma**2), channels=2)
    settings = SitcomSettings(nfe=16, inner_steps=3)

    def image(slices):
        run = Run(multi_coil_problem(slices), Sitcom(), settings, prior)
        return [it.image for it in run][-1]

    both = image((0, 1))
    assert torch.equal(both[:1], image((0,)))
    assert torch.equal(both[1:], image((1,)))


def test_a_trained_network_is_moved_towards_the_measurement():
    problem, prior = dense_problem(size=32, rows=200), load_prior("ct-small", "CT")
    problem.operator.matrix = problem.operator.matrix.float()
    problem.measurement = problem.operator.forward(0.3 * problem.reference.float())
    settings = SitcomSettings(nfe=12, inner_steps=5, sigma_max=0.5)
    with torch.no_grad():
        iterations = all_of(problem, prior, settings)
    for it in iterations:
        assert float(it.residual_x) < 0.95 * float(it.residual_z)


def test_the_memory_of_a_graph_is_what_its_operations_keep():
    x = torch.zeros(1, 1, 16, 8, dtype=torch.float64)
    twice = FunctionPrior(lambda x, sigma: x.exp().exp())  # each keeps its result
    assert backward_bytes(twice, x, 1.0) == 2 * 16 * 8 * 8
    assert backward_bytes(FunctionPrior(lambda x, sigma: 2 * x), x, 1.0) == 0
    with pytest.raises(RequestError, match="cannot be differentiated"):
        backward_bytes(FunctionPrior(lambda x, sigma: x.detach()), x, 1.0)


@pytest.mark.parametrize("allowed", ["setting", "machine"])
def test_a_request_that_does_not_fit_is_refused_before_it_starts(allowed, monkeypatch):
    problem, prior = dense_problem(size=8), FunctionPrior(lambda x, sigma: x.tanh().tanh())
    needed = sitcom.HEADROOM * 2 * 64 * 8  # bytes
    settings = SitcomSettings(memory_gb=needed / 4 / 1e9)
    if allowed == "machine":
        settings = SitcomSettings()
        monkeypatch.setattr(sitcom, "available_memory_bytes", lambda: needed / 4)
    words = "free" if allowed == "machine" else "allowed"
    with pytest.raises(RequestError, match=rf"8 x 8 .*{words}: .* about 4 x 4 would fit") as error:
        all_of(problem, prior, settings)
    assert str(error.value).count(". ") == 0, "one sentence"
    enough = SitcomSettings(nfe=5, memory_gb=needed / 1e9)
    assert len(all_of(problem, prior, enough)) == 1


@pytest.mark.parametrize(
    ("preset", "levels", "calls"), [("recommended", 50, 550), ("matched-50", 10, 50)]
)
def test_budgets_are_presets(preset, levels, calls):
    settings = SitcomSettings(**apply_preset(preset, dense_problem(), "sitcom"))
    assert len(settings.sigmas()) == levels
    assert levels * (settings.inner_steps + 1) == settings.nfe == calls


def test_it_is_in_the_catalogue_and_refuses_too_small_a_budget():
    assert SOLVERS["sitcom"] is Sitcom
    with pytest.raises(RequestError, match="one noise level takes 11"):
        SitcomSettings(nfe=10, inner_steps=10)
