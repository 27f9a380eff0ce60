"""The two theorems: with the dual the fixed point is the optimum, without it it is not."""

import pytest
import torch
from helpers import FunctionPrior, dense_problem, relative

from engine.physics.random import make_generator
from engine.solvers.dc_pnpdp import DcPnpdp, DcPnpdpSettings

SIGMA, RHO, STRENGTH = 0.5, 0.3, 0.8
# D(.; sigma) = prox of STRENGTH sigma^2 phi and the quadratic term rho ||.||^2 (no 1/2)
# make the fixed point solve min ||Ax - y||^2 + WEIGHT phi(x).
WEIGHT = 2 * RHO * STRENGTH * SIGMA**2


def fixed_point(problem, denoise, *, dual, nfe=400):
    settings = DcPnpdpSettings(
        nfe=nfe,
        sigma_max=SIGMA,
        sigma_min=SIGMA,
        rho=RHO,
        cg_iterations=60,
        cg_tolerance=1e-13,
        dual=dual,
        injection="none",
    )
    prior, generator = FunctionPrior(denoise), make_generator(0)
    for iteration in DcPnpdp().iterate(problem, prior, settings, generator):
        last = iteration
    assert relative(last.z, last.x) < 1e-6 or not dual
    return last.image


def shrink(x, sigma):
    return x / (1 + STRENGTH * sigma**2)


def soft_threshold(x, sigma):
    return x.sign() * (x.abs() - STRENGTH * sigma**2).clamp_min(0)


def quadratic_optimum(problem):
    a = problem.operator.matrix
    normal = a.T @ a + WEIGHT / 2 * torch.eye(a.shape[1], dtype=a.dtype)
    return torch.linalg.solve(normal, a.T @ problem.measurement.flatten()).view_as(
        problem.reference
    )


def l1_optimum(problem):
    """Proximal gradient until the optimality conditions hold to rounding."""
    a, y = problem.operator.matrix, problem.measurement.flatten()
    step = 1 / (2 * torch.linalg.matrix_norm(a, 2) ** 2)
    x = torch.zeros(a.shape[1], dtype=a.dtype)
    for _ in range(20_000):
        x = x - step * 2 * a.T @ (a @ x - y)
        x = x.sign() * (x.abs() - step * WEIGHT).clamp_min(0)
    slope = 2 * a.T @ (a @ x - y)
    on = x != 0
    assert 0 < on.sum() < len(x), "the test needs a sparse, non-zero answer"
    torch.testing.assert_close(slope[on], -WEIGHT * x[on].sign(), atol=1e-8, rtol=0)
    assert slope[~on].abs().max() <= WEIGHT + 1e-8
    return x.view_as(problem.reference)


@pytest.mark.parametrize(
    ("denoise", "optimum"), [(shrink, quadratic_optimum), (soft_threshold, l1_optimum)]
)
def test_dual_fixed_point_is_the_optimum(denoise, optimum):
    problem = dense_problem(seed=3, noise=0.1)
    assert relative(fixed_point(problem, denoise, dual=True), optimum(problem)) < 1e-4


@pytest.mark.parametrize(
    ("denoise", "optimum"), [(shrink, quadratic_optimum), (soft_threshold, l1_optimum)]
)
def test_without_the_dual_the_iteration_stops_elsewhere(denoise, optimum):
    problem = dense_problem(seed=3, noise=0.1)
    stopped = fixed_point(problem, denoise, dual=False)
    again = fixed_point(problem, denoise, dual=False, nfe=420)
    assert relative(again, stopped) < 1e-8, "it has stopped"
    assert relative(stopped, optimum(problem)) > 1e-2, "and not at the optimum"
