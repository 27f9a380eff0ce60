"""Constraints of the data step: what is known of an image beforehand."""

from dataclasses import replace

import pytest
import torch
from helpers import FunctionPrior, relative

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.measured_operator import MeasuredCT
from engine.physics.problem import Problem
from engine.physics.random import make_generator
from engine.physics.units import IntensityMap
from engine.solvers.constraint import Constraint, constraint_of
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.dc_pnpdp import DcPnpdp, DcPnpdpSettings
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
