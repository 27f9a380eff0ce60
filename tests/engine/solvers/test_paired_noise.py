"""Noise in pairs: what one iteration leaves of its noise, the next one takes away."""

import pytest
import torch
from helpers import FunctionPrior

from engine.physics.operator import Operator
from engine.physics.problem import Problem
from engine.physics.random import make_generator
from engine.physics.units import IntensityMap
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.solvers.diffpir import Diffpir
from engine.solvers.solver import DiffusionSettings

SIZE, SIGMA, GAIN = 128, 0.7, 0.5
METHODS = [
    pytest.param(DcPnpdp(), {"injection": "awgn"}, id="dc-pnpdp"),
    pytest.param(Diffpir(), {"zeta": 1.0}, id="diffpir"),
]


class UpperHalf(Operator):
    """Measures the upper half of the image; the lower is up to the prior alone."""

    def forward(self, x):
        return x[:, :, : SIZE // 2]

    def adjoint(self, y):
        return torch.cat([y, torch.zeros_like(y)], dim=-2)

    pseudo_inverse = adjoint

    def describe(self):
        return {"kind": "half"}


def half_measured():
    y = torch.zeros(1, 1, SIZE // 2, SIZE)
    return Problem(UpperHalf(), y, IntensityMap("hu", 1000.0), "CT")


def remaining_noise(solver, values, below):
    """SD of what a denoiser that shrinks by GAIN leaves of the noise where nothing is measured."""
    settings = solver.settings_class(
        nfe=40, sigma_max=SIGMA, sigma_min=SIGMA, rho=1.0, paired_below=below, **values
    )
    prior = FunctionPrior(lambda x, sigma: GAIN * x)
    for iteration in solver.iterate(half_measured(), prior, settings, make_generator(0)):
        z = iteration.z
    return float(z[:, :, SIZE // 2 :].std())


@pytest.mark.parametrize(("solver", "values"), METHODS)
def test_the_noise_left_in_what_is_not_measured_has_its_closed_form(solver, values):
    """z <- g (z + sigma n). Fresh noise adds up to g^2 / (1 - g^2) of its variance; of a pair is
    left g (g - 1) n, and of all pairs (g (1 - g))^2 / (1 - g^4): here a fifth."""
    fresh = SIGMA * (GAIN**2 / (1 - GAIN**2)) ** 0.5
    paired = SIGMA * GAIN * (1 - GAIN) / (1 - GAIN**4) ** 0.5
    assert remaining_noise(solver, values, 0.0) == pytest.approx(fresh, rel=0.03)
    assert remaining_noise(solver, values, 1.0) == pytest.approx(paired, rel=0.03)


def test_below_the_limit_every_second_noise_is_the_first_turned_round():
    settings = DiffusionSettings(paired_below=0.4)
    generator, x = make_generator(3), torch.zeros(2, 1, 8, 8)
    noises = [None]
    for k, sigma in enumerate([0.9, 0.5, 0.3, 0.2, 0.1, 0.05]):
        noises.append(settings.noise(k, sigma, x, generator, noises[-1]))
    first, second, third, fourth, fifth, sixth = noises[1:]
    assert torch.equal(fourth, -third)
    assert torch.equal(sixth, -fifth)
    fresh = torch.stack([first, second, third, fifth]).flatten(1)
    assert (torch.corrcoef(fresh) - torch.eye(4)).abs().max() < 0.3
