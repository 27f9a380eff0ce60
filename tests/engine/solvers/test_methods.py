"""Each method against an independent statement of its update."""

import dataclasses
import math

import pytest
import torch
from helpers import FunctionPrior, dense_problem, relative

from engine.physics.random import make_generator
from engine.solvers.catalogue import parse_variant
from engine.solvers.classical import (
    SIRT,
    CGTikhonov,
    StoppingSettings,
    TikhonovSettings,
)
from engine.solvers.daps import Daps
from engine.solvers.data_step import AUTO_RHO_SHARE, DataStep, DataStepSettings
from engine.solvers.dc_pnpdp import DcPnpdp, DcPnpdpSettings
from engine.solvers.ddnm import Ddnm
from engine.solvers.dds import Dds
from engine.solvers.diffpir import Diffpir, DiffpirSettings
from engine.solvers.solver import karras_sigmas
from engine.solvers.sparse import TV, TVSettings
from engine.spec.errors import RequestError, StepFailed

EXACT = {"cg_iterations": 80, "cg_tolerance": 1e-14}


def shrink(x, sigma):
    return x / (1 + sigma**2)


def prox(problem, v, rho):
    """Dense answer of the data step."""
    a = problem.operator.matrix
    rhs = problem.measurement.flatten(1) @ a + rho * v.flatten(1)
    normal = a.T @ a + rho * torch.eye(a.shape[1], dtype=a.dtype)
    return torch.linalg.solve(normal, rhs.T).T.view_as(v)


def all_of(solver, problem, prior, settings, seed=0, resume=None):
    return list(solver.iterate(problem, prior, settings, make_generator(seed), resume))


def test_karras_levels_are_the_published_ones():
    sigmas = karras_sigmas(50, 2, 0.002)
    expected = {0: 2, 1: 1.8275, 2: 1.6680, 10: 0.7667, 20: 0.2523, 30: 0.0673, 40: 0.0132}
    for i, value in expected.items():
        assert sigmas[i] == pytest.approx(value, abs=5e-5)
    assert sigmas[48] == pytest.approx(0.0025, abs=5e-5)
    assert sigmas[-1] == pytest.approx(0.002)
    assert karras_sigmas(1, 2, 0.002) == [2]


def test_dc_pnpdp_is_the_four_steps_of_the_paper():
    problem, prior = dense_problem(seed=1, batch=2), FunctionPrior(shrink)
    settings = DcPnpdpSettings(nfe=5, rho=0.4, injection="none", **EXACT)
    z = problem.operator.pseudo_inverse(problem.measurement)
    u = torch.zeros_like(z)
    for it, sigma in zip(
        all_of(DcPnpdp(), problem, prior, settings), karras_sigmas(5, 2, 0.002), strict=True
    ):
        x = prox(problem, z - u, 0.4)
        z = shrink(x + u, sigma)
        u = u + x - z
        assert relative(it.x, x) < 1e-9
        assert relative(it.image, z) < 1e-9
        torch.testing.assert_close(it.dual, u.flatten(1).norm(dim=1))
        torch.testing.assert_close(it.gap, (x - z).flatten(1).norm(dim=1), atol=1e-9, rtol=1e-7)
        residual = (problem.operator.forward(z) - problem.measurement).flatten(1).norm(dim=1)
        torch.testing.assert_close(it.residual_z, residual, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("zeta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("below", [0.0, 0.5])
def test_diffpir_renoises_with_the_re_estimated_noise(zeta, below):
    problem, prior = dense_problem(seed=1), FunctionPrior(shrink)
    settings = DiffpirSettings(nfe=4, rho_over_sigma2=0.1, zeta=zeta, paired_below=below, **EXACT)
    sigmas = [*karras_sigmas(4, 2, 0.002), 0.0]
    generator = make_generator(0)

    def normal():
        return torch.randn(1, 1, 6, 6, generator=generator, dtype=torch.float64)

    n = normal()
    x = problem.operator.pseudo_inverse(problem.measurement) + 2 * n
    for i, it in enumerate(all_of(Diffpir(), problem, prior, settings)):
        x0 = prox(problem, shrink(x, sigmas[i]), 0.1 / sigmas[i] ** 2)
        e = (x - x0) / sigmas[i]
        n = -n if sigmas[i + 1] < below and i % 2 == 0 else normal()
        x = x0 + sigmas[i + 1] * (math.sqrt(1 - zeta) * e + math.sqrt(zeta) * n)
        assert relative(it.image, x0) < 1e-8
    assert torch.equal(it.image, it.x)


def test_rho_without_a_rule_is_the_noise_variance_over_sigma_squared():
    problem = dense_problem(noise=0.3)
    step = DataStep(problem, DataStepSettings())
    share = AUTO_RHO_SHARE * problem.operator.norm() ** 2
    assert step.rho(0.5) == pytest.approx((0.09 + share) / 0.25)


def test_weights_enter_the_data_step():
    problem = dense_problem(seed=2, noise=0.1)
    problem.weights = torch.rand(problem.measurement.shape, dtype=torch.float64) + 0.1
    a, w = problem.operator.matrix, problem.weights.flatten()
    v = torch.zeros_like(problem.reference)
    x = DataStep(problem, DataStepSettings(rho=0.2, **EXACT))(v, 1.0)
    normal = a.T @ (w[:, None] * a) + 0.2 * torch.eye(a.shape[1], dtype=a.dtype)
    expected = torch.linalg.solve(normal, a.T @ (w * problem.measurement.flatten()))
    assert relative(x.flatten(), expected) < 1e-9


def test_switching_the_dual_off_leaves_it_at_zero():
    settings = DcPnpdpSettings(nfe=3, rho=0.4, dual=False)
    for it in all_of(DcPnpdp(), dense_problem(size=8), FunctionPrior(shrink), settings):
        assert float(it.dual) == 0


def test_injection_modes_add_the_noise_they_say():
    problem = dense_problem(rows=80, size=16)
    energies = {}
    for injection in ("none", "awgn", "sh"):
        settings = DcPnpdpSettings(nfe=2, sigma_max=1, sigma_min=1, rho=1.0, injection=injection)
        it = all_of(DcPnpdp(), problem, FunctionPrior(shrink), settings)[0]
        energies[injection] = float(it.psd["homogenized"].mean() - it.psd["residual"].mean())
    assert energies["none"] == 0
    assert energies["awgn"] > energies["sh"] > 0


@pytest.mark.parametrize(
    ("denoise", "step"),
    [
        (lambda x, sigma: x * float("nan"), "denoiser"),
        (lambda x, sigma: x * float("inf"), "denoiser"),
        (lambda x, sigma: x * 1e9, "denoiser diverged"),
    ],
)
@pytest.mark.parametrize("solver", [DcPnpdp(), Diffpir(), Ddnm(), Dds(), Daps()])
def test_a_bad_step_is_named(solver, denoise, step):
    settings = solver.settings_class.pick({"nfe": 3, "rho": 0.4})
    with pytest.raises(StepFailed, match=step):
        all_of(solver, dense_problem(size=8), FunctionPrior(denoise), settings)


def test_cg_tikhonov_reaches_the_direct_solution():
    problem = dense_problem(rows=20)
    a = problem.operator.matrix
    penalty = 0.01 * problem.operator.norm() ** 2
    normal = a.T @ a + penalty * torch.eye(a.shape[1], dtype=a.dtype)
    expected = torch.linalg.solve(normal, a.T @ problem.measurement.flatten())
    its = all_of(CGTikhonov(), problem, None, TikhonovSettings(iterations=80, tikhonov=0.01))
    assert relative(its[-1].image.flatten(), expected) < 1e-8


def test_sirt_is_its_formula_and_fits_the_data():
    problem = dense_problem(rows=60)
    problem.operator.matrix = problem.operator.matrix.abs()  # rays have positive lengths
    problem.measurement = problem.operator.forward(problem.reference)
    a, y = problem.operator.matrix, problem.measurement.flatten()
    its = all_of(SIRT(), problem, None, StoppingSettings(iterations=400))
    x = torch.zeros(a.shape[1], dtype=a.dtype)
    for _ in range(3):
        x = x + (a.T @ ((y - a @ x) / a.sum(1))) / a.sum(0)
    assert relative(its[2].image.flatten(), x) < 1e-10
    assert float(its[-1].residual_x) < 0.1 * float(its[0].residual_x)


@pytest.mark.parametrize("solver", [SIRT(), CGTikhonov()], ids=["sirt", "cg"])
def test_the_iteration_ends_where_the_residual_is_the_noise(solver):
    """Each slice by itself, and where the noise is not known never."""
    problem = dense_problem(rows=60, batch=3)
    problem.operator.matrix = problem.operator.matrix.abs()
    clean = problem.operator.forward(problem.reference)
    sigma = torch.tensor([0.2, 0.02, 0.0], dtype=torch.float64).view(-1, 1, 1, 1)
    noise = torch.randn(clean.shape, generator=make_generator(4), dtype=torch.float64)
    problem.measurement, problem.noise_sigma = clean + sigma * noise, sigma
    settings = solver.settings_class(iterations=300)
    its = all_of(solver, problem, None, settings)
    reduced = problem.residual(its[-1].image).square().mean((1, 2, 3)) / sigma.flatten() ** 2
    assert float(reduced[0]) == pytest.approx(1, abs=1e-6)
    known = all_of(solver, only_first(problem), None, settings)
    assert known[-1].k == known[-1].K < 300
    assert known[-1].note.startswith(f"Stopped after {known[-1].k} iterations")
    assert relative(known[-1].image, its[-1].image[:1]) < 1e-9
    never = all_of(solver, only_first(problem), None, solver.settings_class(stop_at_noise=False))
    assert (never[-1].k, never[-1].note) == (200, "")
    assert float(never[-1].residual_x) < float(known[-1].residual_x)


def only_first(problem):
    return dataclasses.replace(
        problem,
        measurement=problem.measurement[:1],
        reference=problem.reference[:1],
        noise_sigma=problem.noise_sigma[:1],
        slices=(0,),
    )


def test_tv_solution_satisfies_its_optimality_condition():
    """At the optimum, -A^T(Ax - y) / lambda is a subgradient of TV: <p, x> = TV, |<p, w>| <= TV."""
    from engine.priors.analytic import total_variation

    problem = dense_problem(rows=80, size=8)
    strength = 0.01
    settings = TVSettings(iterations=600, tv_strength=strength, tv_inner=50, tv_method="fista")
    x = all_of(TV(), problem, None, settings)[-1].image
    penalty = strength * problem.operator.norm() ** 2
    p = -problem.operator.adjoint(problem.residual(x)) / penalty
    tv = float(total_variation(x))
    assert tv > 0.1
    assert float((p * x).sum()) == pytest.approx(tv, rel=1e-3)
    for seed in range(50):
        w = torch.randn(x.shape, generator=make_generator(seed), dtype=x.dtype)
        assert abs(float((p * w).sum())) <= float(total_variation(w)) * 1.001


def test_a_variant_names_its_changes():
    solver, changes = parse_variant("dc-pnpdp:dual=off:injection=none:nfe=7")
    assert (solver.name, changes) == ("dc-pnpdp", {"dual": False, "injection": "none", "nfe": 7})
    for wrong in ("dc-pnpdp:dual", "dc-pnpdp:speed=9", "magic", "dc-pnpdp:nfe=two"):
        with pytest.raises(RequestError):
            parse_variant(wrong)
