"""Constraints of the data step: what is known of an image beforehand."""

from dataclasses import replace

import pytest
import torch
from helpers import FunctionPrior, relative

from engine.physics.ct import CTOperator
from engine.physics.field_of_view import MeasuredCT
from engine.physics.geometry import CTGeometry
from engine.physics.problem import Problem
from engine.physics.random import make_generator
from engine.physics.units import IntensityMap
from engine.priors.analytic import divergence, gradient
from engine.runs.run import Run
from engine.solvers.catalogue import find_solver
from engine.solvers.constraint import Constraint, constraint_of
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.dc_pnpdp import DcPnpdp, DcPnpdpSettings
from engine.solvers.solver import Resume
from engine.solvers.sparse import TV, TVSettings
from engine.spec.errors import RequestError

INTENSITY = IntensityMap("hu", 800.0, 100.0)
AIR = -1100.0 / 800.0
GEOMETRY = CTGeometry.sparse_view(16, 180.0, size=48, detectors=48)


def body(noise=0.0):
    """A measured scan of an ellipse in air, and its true image."""
    operator = MeasuredCT(CTOperator(GEOMETRY, dtype=torch.float64), INTENSITY)
    y, x = torch.meshgrid(*2 * (torch.linspace(-1, 1, 48, dtype=torch.float64),), indexing="ij")
    truth = torch.where((x / 0.6) ** 2 + (y / 0.8) ** 2 < 1, 0.1, AIR)[None, None].double()
    y = operator.forward(truth)
    y = y + noise * torch.randn(y.shape, generator=make_generator(1), dtype=y.dtype)
    return Problem(operator, y, INTENSITY, "CT", noise_sigma=noise), truth


def step(problem, **settings):
    return DataStep(problem, DataStepSettings(rho=1.0, **settings))


def test_without_a_constraint_nothing_is_touched():
    problem, _ = body(noise=5.0)
    assert step(problem).constraint is None
    assert constraint_of(problem, False, False) is None


def test_the_true_image_is_allowed_and_comes_back_bit_for_bit():
    problem, truth = body()
    both = constraint_of(problem, True, True)
    truth = truth.clamp_min(both.lowest)  # air to the last bit
    assert torch.equal(both.apply(truth), truth)
    assert torch.equal(problem.residual(both.apply(truth)), problem.residual(truth))


@pytest.mark.parametrize("asked", [(True, False), (False, True), (True, True)])
def test_a_constrained_image_is_never_farther_from_the_true_one(asked):
    """A projection onto a convex set that holds the truth."""
    problem, truth = body(noise=20.0)
    free = step(problem)(torch.full_like(truth, -0.5), 1.0)
    held = constraint_of(problem, *asked).apply(free)
    assert (held - truth).norm() < (free - truth).norm()
    again = constraint_of(problem, *asked).apply(held)
    assert torch.equal(again, held)


def test_positivity_holds_in_hu_and_only_below_air():
    problem, truth = body(noise=20.0)
    v = torch.full_like(truth, -0.5)
    free, held = step(problem)(v, 1.0), step(problem, positivity=True)(v, 1.0)
    assert problem.physical(free).min() < -1050
    assert problem.physical(held).min() == pytest.approx(-1000, abs=1e-3)
    above = free > AIR
    assert torch.equal(held[above], free[above])


def test_the_field_of_view_is_held_at_air():
    problem, truth = body(noise=20.0)
    x = step(problem, field_of_view=True)(torch.zeros_like(truth), 1.0)
    seen = problem.operator.support() > 0
    torch.testing.assert_close(x[~seen], torch.full_like(x[~seen], AIR))
    assert x[seen].std() > 0


def test_a_simulated_scan_sees_its_whole_image():
    problem, _ = body()
    problem = replace(problem, operator=problem.operator.operator)
    assert constraint_of(problem, False, True) is None


def test_an_mr_image_has_no_lowest_value():
    problem, _ = body()
    with pytest.raises(RequestError, match="--positivity is for CT"):
        constraint_of(replace(problem, modality="MR"), True, False)


def test_outside_of_mr_is_no_signal():
    problem, _ = body()
    found = constraint_of(replace(problem, modality="MR"), False, True)
    assert found == Constraint(support=found.support, outside=0.0)


def test_a_constraint_that_holds_anyway_changes_no_fixed_point():
    """With the dual: the result of the splitting is the same to the tolerance of the solver."""
    problem, _ = body(noise=1.0)
    settings = DcPnpdpSettings(
        nfe=60,
        sigma_max=0.5,
        sigma_min=0.5,
        rho=30.0,
        cg_iterations=60,
        injection="none",
        symmetry=False,
    )

    def towards_water(x, sigma):  # the proximal map of a quadratic, well above air
        return 0.3 * x + 0.7 * 0.2

    def run(**constraints):
        asked = replace(settings, **constraints)
        generator = make_generator(0)
        *_, last = DcPnpdp().iterate(problem, FunctionPrior(towards_water), asked, generator)
        return last

    free, held = run(), run(positivity=True)
    assert free.x.min() > AIR
    assert relative(held.image, free.image) < 1e-6


# -- the classical methods -------------------------------------------------------------------------

CLASSICAL = ("tv", "wavelet", "sirt", "cg")
BOTH = {"positivity": True, "field_of_view": True}


def classical(name, problem, **settings):
    run = Run(problem, find_solver(name), find_solver(name).settings_class(**settings))
    for _ in run:
        pass
    return run


@pytest.mark.parametrize("name", CLASSICAL)
def test_every_image_of_a_constrained_classical_method_is_allowed(name):
    problem, truth = body(noise=20.0)
    problem = replace(problem, noise_sigma=20.0)
    solver = find_solver(name)
    asked = solver.settings_class(iterations=12, **BOTH)
    allowed = constraint_of(problem, True, True)
    free = classical(name, problem, iterations=12).image
    assert not torch.equal(allowed.apply(free), free)
    for iteration in solver.iterate(problem, None, asked, make_generator(0)):
        assert torch.equal(allowed.apply(iteration.image), iteration.image)
    assert (iteration.image - truth).norm() < (free - truth).norm()


@pytest.mark.parametrize("name", CLASSICAL)
def test_a_constraint_that_allows_every_image_changes_no_bit(name):
    """Nothing is asked for; and of a scan that sees its whole image the field of view is all."""
    problem, _ = body(noise=20.0)
    problem = replace(problem, operator=problem.operator.operator)
    free = classical(name, problem, iterations=8).image
    assert torch.equal(classical(name, problem, iterations=8, field_of_view=True).image, free)


def test_cg_ends_at_the_allowed_image_nearest_to_its_own():
    problem, _ = body(noise=20.0)
    ours = {"iterations": 10, "stop_at_noise": False}
    free, held = classical("cg", problem, **ours), classical("cg", problem, **ours, **BOTH)
    assert torch.equal(held.image, constraint_of(problem, True, True).apply(free.image))


def test_sirt_comes_to_the_allowed_image_that_fits_best():
    """KKT of min ||A x - y||^2_R: no slope above air, and none that leads up from air."""
    problem, _ = body(noise=20.0)
    image = classical("sirt", problem, iterations=4000, stop_at_noise=False, **BOTH).image
    y = problem.measurement
    rows = problem.operator.forward(torch.ones_like(image))
    weighed = torch.where(rows > 0, problem.residual(image) / rows, torch.zeros_like(y))
    slope = problem.operator.adjoint(weighed)
    inside = problem.operator.support().expand_as(image) > 0
    above = inside & (image > AIR + 1e-9)
    size = slope[inside].abs().max()
    assert (inside & ~above).any()
    assert above.any()
    assert slope[above].abs().max() < 1e-3 * size
    assert slope[inside & ~above].min() > -1e-3 * size


@pytest.mark.parametrize("asked", [{"positivity": True}, {"field_of_view": True}, BOTH])
def test_constrained_tv_is_at_the_optimum_of_its_problem(asked):
    """KKT of 1/2 ||A x - y||^2 + l TV(x) on a convex set, with l v, |v| <= 1, from the dual."""
    problem, _ = body(noise=20.0)
    strength = 3e-3
    settings = TVSettings(tv_strength=strength, iterations=600, tolerance=0.0, **asked)
    *_, last = TV().iterate(problem, None, settings, make_generator(0))
    state, image = last.state, last.image
    field = state["q"] / state["t"]  # q is the dual of s = grad x, its threshold t
    length = field.square().sum((0, 2)).sqrt()
    assert length.max() < 1 + 1e-9
    edges = gradient(image)
    steep = edges.square().sum((0, 2)).sqrt() > 0.02
    along = (edges * field).sum((0, 2)) / edges.square().sum((0, 2)).sqrt().clamp_min(1e-12)
    assert (1 - along[steep]).abs().max() < 1e-2  # v points along the edges

    penalty = strength * problem.operator.norm() ** 2
    slope = problem.operator.adjoint(problem.residual(image)) - penalty * divergence(field)
    scale = problem.operator.adjoint(problem.residual(image)).abs().max()
    lowest = AIR if "positivity" in asked else -torch.inf
    seen = problem.operator.support().expand_as(image) > 0
    inside = seen if "field_of_view" in asked else torch.ones_like(seen)
    above = inside & (image > lowest + 1e-3)
    assert slope[above].abs().max() < 1e-3 * scale
    at_air = inside & ~above
    if "positivity" in asked:
        assert at_air.any()
        assert slope[at_air].min() > -1e-3 * scale
        assert slope[at_air].max() > 0.01 * scale  # the constraint does hold something


def test_the_old_tv_takes_no_constraint():
    problem, _ = body(noise=20.0)
    with pytest.raises(RequestError, match="admm does"):
        classical("tv", problem, tv_method="fista", positivity=True)


@pytest.mark.parametrize("name", CLASSICAL)
def test_a_constrained_classical_run_goes_on_bit_for_bit(name):
    problem, _ = body()
    solver = find_solver(name)
    settings = solver.settings_class(iterations=9, **BOTH)
    iterations = list(solver.iterate(problem, None, settings, make_generator(0)))
    half = iterations[4]
    again = list(
        solver.iterate(problem, None, settings, make_generator(0), Resume(half.k, half.state))
    )
    assert torch.equal(again[-1].image, iterations[-1].image)
