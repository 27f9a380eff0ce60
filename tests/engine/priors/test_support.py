"""Where no coil sees the image, nothing is painted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import FunctionPrior
from solver_cases import SOLVERS

from engine.physics.ct import CTOperator
from engine.physics.field_of_view import MeasuredCT
from engine.physics.fourier import to_channels
from engine.physics.geometry import CTGeometry
from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI
from engine.physics.phantoms import brain_mr
from engine.physics.problem import Problem
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.priors.adapted import SupportedPrior, augmented, with_support
from engine.priors.catalogue import load_prior
from engine.priors.familiarity import excess
from engine.runs.run import Run

SIZE = 64
DIFFUSION = [
    pytest.param(solver, values, id=solver.name) for solver, values in SOLVERS if solver.needs_prior
]


def paints(x, sigma):
    """A prior that sees something everywhere."""
    return x / (1 + sigma**2) + 0.3


def disc():
    rows, columns = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    return torch.from_numpy(np.hypot(rows, columns) < 26)


@pytest.fixture(scope="module")
def problem():
    """Eight coils whose maps end with the object."""
    image = torch.from_numpy(brain_mr(seed=3, size=SIZE).image.astype(np.complex64)) * disc()
    maps = birdcage_maps(8, SIZE, SIZE) * disc()
    operator = MultiCoilMRI(build_mask("fastmri", SIZE, 3, acs_lines=12), maps)
    reference = to_channels(image[None, None])
    y = operator.forward(reference)
    return Problem(operator, y, IntensityMap("mr"), "MR", 0.01, reference=reference)


def prior_of(function, symmetric=False):
    prior = FunctionPrior(function)
    prior.info = replace(prior.info, symmetric=symmetric)
    return prior


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("solver", "values"), DIFFUSION)
def test_every_method_leaves_zero_outside_the_coil_maps(problem, solver, values, symmetric):
    outside = (~disc()).expand(1, 2, SIZE, SIZE)

    def image(prior):
        run = Run(problem, solver, solver.settings_class(**values), prior, seed=0)
        list(run)
        return run.image

    held = image(with_support(prior_of(paints, symmetric), problem.operator))
    # a sample keeps the small noise of its own last Langevin step
    assert float(held[outside].abs().max()) <= (0.02 if solver.name == "daps" else 0)
    assert float(held[~outside].abs().max()) > 0.1
    assert float(image(prior_of(paints, symmetric))[outside].abs().max()) > 0.1


def test_what_is_seen_stays_where_it_is_when_the_denoiser_looks_from_elsewhere(problem):
    held = with_support(prior_of(paints, symmetric=True), problem.operator)
    x = torch.ones(1, 2, SIZE, SIZE)
    assert held.info.symmetric
    for k in range(4):
        assert torch.equal(augmented(held, k)(x, 0.5) > 0, disc().expand(1, 2, SIZE, SIZE))


def test_maps_that_see_everything_change_no_prior():
    operator = MultiCoilMRI(build_mask("fastmri", SIZE, 3), birdcage_maps(4, SIZE, SIZE))
    prior = prior_of(paints)
    assert with_support(prior, operator) is prior


def test_each_slice_has_its_own_support(problem):
    maps = torch.stack([problem.operator.maps[0], birdcage_maps(8, SIZE, SIZE)])
    held = with_support(prior_of(paints), MultiCoilMRI(problem.operator.mask, maps))
    x = torch.ones(2, 2, SIZE, SIZE)
    empty = (held(x, 0.5) == 0).any(dim=1)
    assert torch.equal(empty[0], ~disc())
    assert not empty[1].any()
    assert not (held(x.repeat(3, 1, 1, 1), 0.5) == 0).any()  # samples of both slices: what one has


def test_outside_the_field_of_view_of_a_measured_ct_scan_the_prior_is_free():
    geometry = CTGeometry.sparse_view(8, 180.0, size=32, detectors=32)
    operator = MeasuredCT(CTOperator(geometry), IntensityMap("hu", 1000.0, 0.0))
    assert not operator.support().all(), "the corners are not seen"
    prior = prior_of(paints)
    assert with_support(prior, operator) is prior, "zero is water there, not air"


def test_what_a_prior_knows_is_asked_without_the_support():
    """It looks at the image turned, too, where the support would lie elsewhere."""
    prior = load_prior("auto", "MR", False)
    support = torch.zeros(1, 1, 48, 64)
    support[..., 8:40, 8:56] = 1
    image = 0.5 * support.expand(1, 2, 48, 64)
    held = excess(SupportedPrior(prior, support), image)
    assert torch.equal(held, excess(prior, image))
