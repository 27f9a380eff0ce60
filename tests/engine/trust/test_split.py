"""Measured and guessed: two parts that add up, the second of which the scan does not see."""

import numpy as np
import pytest
import torch
from helpers import DenseOperator, dense_matrix, dense_problem, relative

from engine.physics.ct import CTOperator
from engine.physics.fourier import fft2c
from engine.physics.geometry import CTGeometry
from engine.physics.masks import build_mask
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.problem import Problem
from engine.physics.sensitivity import birdcage_maps
from engine.physics.units import IntensityMap
from engine.workflows.trust.split import FLOOR, Splitter

HU = IntensityMap("hu", 1000.0)


def ct_problem(noise=0.0, views=5, size=12, **geometry):
    geometry = CTGeometry.sparse_view(views=views, size=(size, size), pixel_mm=2.0, **geometry)
    operator = CTOperator(geometry, dtype=torch.float64)
    x = torch.rand(2, 1, size, size, dtype=torch.float64, generator=torch.manual_seed(1))
    return Problem(operator, operator.forward(x), HU, "CT", noise_sigma=noise, reference=x)


def mri_problem(coils=1):
    mask = build_mask("equispaced", 16, 4.0, acs_lines=2, seed=0)
    operator = (
        SingleCoilMRI(mask, (16, 16))
        if coils == 1
        else MultiCoilMRI(mask, birdcage_maps(coils, 16, 16))
    )
    x = torch.randn(1, 2, 16, 16, generator=torch.manual_seed(2))
    return Problem(operator, operator.forward(x), IntensityMap("mr"), "MR", reference=x)


@pytest.mark.parametrize("problem", [ct_problem(), mri_problem(), mri_problem(2)])
def test_the_parts_add_up_to_the_image_above_its_origin(problem):
    split = Splitter(problem, problem.reference)(problem.reference)
    whole = split.measured + split.guessed + split.origin
    assert relative(whole, problem.reference) < 1e-6
    assert 0 < split.share[0] < 1


def test_without_noise_the_measured_part_is_the_projection_of_the_pseudo_inverse():
    problem = dense_problem(rows=20, size=6, batch=2)
    image = problem.reference
    splitter = Splitter(problem, image, floor=1e-14)
    split = splitter(image)
    a = problem.operator.matrix.numpy()
    above = (image - split.origin).flatten(1).numpy()
    expected = above @ (np.linalg.pinv(a) @ a).T
    assert np.allclose(split.measured.flatten(1).numpy(), expected, atol=1e-5)
    assert max(split.leak) < 1e-5
    assert np.allclose((split.measured * split.guessed).sum(dim=(1, 2, 3)), 0, atol=1e-4)


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_a_small_scan_is_split_by_its_singular_values_as_the_rule_says(noise):
    problem = ct_problem(noise, angular_range_deg=90.0)
    image = problem.reference
    split = Splitter(problem, image)(image)
    _, s, v = np.linalg.svd(dense_matrix(problem.operator).numpy(), full_matrices=True)
    s = np.concatenate([s, np.zeros(len(v) - len(s))])
    for n in range(2):
        floor = FLOOR * problem.operator.norm() ** 2
        penalty = max((noise / float(image[n].std())) ** 2, floor)
        above = v @ (image[n] - split.origin).flatten().numpy()
        expected = v.T @ (s**2 / (s**2 + penalty) * above)
        off = split.measured[n].flatten().numpy() - expected
        assert np.abs(off).max() < 1e-4
    if not noise:
        assert max(split.leak) < 1e-3


def test_more_noise_leaves_more_to_the_prior():
    shares = [Splitter(p, p.reference)(p.reference).share[0] for p in map(ct_problem, (0.0, 5.0))]
    assert shares[1] > 1.2 * shares[0]


def test_single_coil_mri_is_split_exactly_at_the_mask():
    problem = mri_problem()
    split = Splitter(problem, problem.reference)(problem.reference)
    sampled = problem.operator.mask.to_tensor()[0, 0].expand(16, 16)
    assert (split.steps, float(split.penalty)) == (0, 0.0)
    assert fft2c(split.guessed)[..., sampled].abs().max() < 1e-5
    assert fft2c(split.measured)[..., ~sampled].abs().max() < 1e-5


def test_air_is_the_origin_of_ct_whatever_the_units_of_the_prior():
    here = ct_problem()
    hu = here.intensity.to_physical(here.reference)
    other = IntensityMap("hu", 500.0, 200.0)
    there = Problem(here.operator, here.measurement, other, "CT")
    maps = [
        Splitter(p, i)(i).guessed * p.intensity.scale
        for p, i in ((here, here.reference), (there, other.to_normalised(hu)))
    ]
    assert relative(maps[0], maps[1]) < 1e-3


def test_the_correction_is_what_leads_an_edited_image_back_to_the_data():
    operator = DenseOperator(torch.eye(36, dtype=torch.float64)[:18], (1, 6, 6))
    x = torch.zeros(1, 1, 6, 6, dtype=torch.float64)
    problem = Problem(operator, operator.forward(x), HU, "CT", reference=x)
    edited = x.clone()
    edited[..., 0, 0], edited[..., 5, 5] = 1.0, 1.0  # seen, unseen
    correction = Splitter(problem, edited).correction(edited)
    assert correction[0, 0, 0, 0] == pytest.approx(-1, abs=1e-4)
    assert correction[0, 0, 5, 5] == 0
