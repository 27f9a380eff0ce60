"""A prior clipped above air still reconstructs air, and the body beside it, in true HU."""

from dataclasses import replace

import pytest
import torch

from engine.physics.simulate import Slices, simulate
from engine.physics.units import IntensityMap
from engine.priors.adapted import AirShifted, air_mask, with_air
from engine.priors.analytic import TVPrior
from engine.priors.prior import Prior
from engine.runs.run import Run
from engine.solvers.catalogue import find_solver
from engine.spec.acquisition import CTAcquisition

UNITS = IntensityMap("hu", 800.0)


class Clipped(Prior):
    """As a network trained on images of -800 to 800 HU: it returns nothing else."""

    def __init__(self, lowest_hu=-800.0):
        self.prior = TVPrior(UNITS, 1)
        self.info = replace(self.prior.info, details={"lowest_hu": lowest_hu})

    def __call__(self, x, sigma):
        return self.prior(x, sigma).clamp(-1, 1)


def disc(size=64, radius=20, centre=(0, 0)):
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    middle = (size - 1) / 2
    return (y - middle - centre[0]) ** 2 + (x - middle - centre[1]) ** 2 <= radius**2


@pytest.fixture
def problem():
    hu = torch.where(disc(), 40.0, -1000.0)[None, None]
    return simulate(Slices(hu, "CT", 4.0), CTAcquisition(views=30), UNITS)


def reconstruct(problem, prior):
    solver = find_solver("dc-pnpdp")
    run = Run(problem, solver, solver.settings_class(nfe=12), prior, seed=0)
    list(run)
    return problem.physical(run.image)[0, 0]


def test_air_is_found_where_a_ray_met_nothing(problem):
    mask = air_mask(problem)[0, 0].bool()
    assert not mask[disc(radius=19)].any()
    assert mask[~disc(radius=24)].all()


def test_air_of_several_slices_is_what_all_of_them_have():
    hu = torch.stack([torch.where(disc(radius=12, centre=(0, c)), 0.0, -1000.0) for c in (-12, 12)])
    both = simulate(Slices(hu[:, None], "CT", 4.0, (0, 1)), CTAcquisition(views=30), UNITS)
    mask = air_mask(both)[0, 0].bool()
    assert mask.shape == (64, 64)
    assert not mask[disc(radius=10, centre=(0, -12)) | disc(radius=10, centre=(0, 12))].any()


def test_with_the_shift_air_and_body_keep_their_hu(problem):
    inside, outside = disc(radius=16), ~disc(radius=26)
    image = reconstruct(problem, with_air(Clipped(), problem))
    assert abs(image[outside].mean() + 1000) < 10
    assert abs(image[inside].mean() - 40) < 10
    without = reconstruct(problem, Clipped())
    assert without[outside].mean() > -950  # what the correction is for


def test_only_a_clipped_ct_prior_is_shifted(problem):
    assert isinstance(with_air(Clipped(), problem), AirShifted)
    assert not isinstance(with_air(Clipped(-1000.0), problem), AirShifted)
    plain = TVPrior(UNITS, 1)
    assert with_air(plain, problem) is plain
