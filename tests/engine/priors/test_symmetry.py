"""A denoiser asked from another place each time: exact where it is symmetric, better where not."""

from dataclasses import replace

import pytest
import torch
from helpers import FunctionPrior, dense_problem
from solver_cases import SOLVERS

from engine.priors.adapted import LARGEST_SHIFT, AirShifted, Moved, augmented
from engine.runs.run import Run
from engine.solvers.sitcom import Sitcom


def blur(x, sigma):
    """Symmetric: a circular mean of three columns and three rows."""
    x = (x.roll(1, -1) + x + x.roll(-1, -1)) / 3
    return (x.roll(1, -2) + x + x.roll(-1, -2)) / 3


def biased(x, sigma):
    """Not symmetric: its error depends on the place, and is zero on average over the places."""
    height, width = x.shape[-2:]
    ramp = torch.linspace(-1, 1, width, dtype=x.dtype) + torch.linspace(
        -1, 1, height, dtype=x.dtype
    ).view(-1, 1)
    return x / (1 + sigma**2) + 0.1 * ramp


def symmetric(function):
    prior = FunctionPrior(function)
    prior.info = replace(prior.info, symmetric=True)
    return prior


def image(seed=0, size=24):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 1, size, size, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("k", range(6))
def test_a_symmetric_denoiser_is_the_same_from_everywhere(k):
    x = image()
    torch.testing.assert_close(augmented(symmetric(blur), k)(x, 0.3), blur(x, 0.3))


@pytest.mark.parametrize("k", range(6))
def test_the_image_comes_back_to_where_it_was(k):
    x = image()
    assert torch.equal(augmented(FunctionPrior(lambda x, sigma: x), k)(x, 0.3), x)


def test_what_the_denoiser_sees_is_shifted_first_and_mirrored_then():
    seen = []
    prior = FunctionPrior(lambda x, sigma: seen.append(x) or x)
    x = torch.zeros(1, 1, 5, 7)
    x[0, 0, 1, 2] = 1
    Moved(prior, True, (2, -1))(x, 0.1)
    assert seen[0].nonzero().tolist() == [[0, 0, 3, 7 - 1 - 1]]


def test_iterations_look_from_places_that_spread_evenly_on_both_sides():
    places = [augmented(FunctionPrior(blur), k) for k in range(50)]
    assert sum(place.mirror for place in places) == 25
    shifts = torch.tensor([place.shift for place in places], dtype=torch.float64)
    assert shifts.abs().max() == LARGEST_SHIFT
    assert len({place.shift for place in places}) > 45
    assert shifts.mean(0).abs().max() < 0.5
    even = 2 * LARGEST_SHIFT / 12**0.5  # the SD of an even spread
    torch.testing.assert_close(
        shifts.std(0), torch.full((2,), even, dtype=torch.float64), rtol=0.05, atol=0
    )


def test_errors_that_depend_on_the_place_average_out():
    x = image(size=3 * LARGEST_SHIFT)  # the shifts reach over two thirds of it
    right = x / (1 + 0.3**2)
    still = biased(x, 0.3) - right
    mean = sum(augmented(symmetric(biased), k)(x, 0.3) - right for k in range(50)) / 50
    assert mean.norm() < 0.35 * still.norm()


def run(solver, values, prior):
    problem = dense_problem(rows=150, size=12, batch=2)
    problem.operator.matrix = problem.operator.matrix.abs()
    problem.measurement = problem.operator.forward(problem.reference)
    made = Run(problem, solver, solver.settings_class(**values), prior, seed=0)
    list(made)
    return made.image


DIFFUSION = [
    pytest.param(solver, values, id=solver.name)
    for solver, values in [*SOLVERS, (Sitcom(), {"nfe": 10})]
    if solver.needs_prior
]


@pytest.mark.parametrize(("solver", "values"), DIFFUSION)
def test_every_method_asks_from_other_places_if_the_prior_allows_it(solver, values):
    plain = run(solver, values, FunctionPrior(biased))
    off = run(solver, {**values, "symmetry": False}, symmetric(biased))
    on = run(solver, values, symmetric(biased))
    assert torch.equal(plain, off)
    assert not torch.equal(plain, on)


@pytest.mark.parametrize(("solver", "values"), DIFFUSION)
def test_with_a_symmetric_denoiser_nothing_changes_but_rounding(solver, values):
    plain = run(solver, values, FunctionPrior(blur))
    torch.testing.assert_close(run(solver, values, symmetric(blur)), plain, rtol=1e-6, atol=1e-8)


def test_air_that_belongs_to_a_place_keeps_the_denoiser_there():
    shifted = AirShifted(symmetric(blur), torch.zeros(1, 1, 24, 24))
    assert not shifted.info.symmetric
