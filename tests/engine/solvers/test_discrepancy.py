"""Runs with a known noise level end where the image fits as well as the noise allows."""

from dataclasses import replace

import pytest
import torch
from helpers import dense_problem

from engine.data.source import open_input
from engine.physics.random import make_generator
from engine.priors.adapted import with_air
from engine.priors.catalogue import load_prior
from engine.solvers.catalogue import find_solver
from engine.solvers.data_step import MOST_TRUST, DataStep, DataStepSettings
from engine.solvers.dc_pnpdp import DcPnpdpSettings
from engine.solvers.discrepancy import pixel_noise
from engine.spec.input_options import InputOptions

NOISE = 0.05


def chi2(problem, image):
    return problem.reduced_chi2(problem.residual(image))


def test_the_true_image_has_a_reduced_chi_square_of_one():
    problem = dense_problem(rows=4000, noise=NOISE, batch=3)
    assert chi2(problem, problem.reference).tolist() == pytest.approx([1, 1, 1], abs=0.1)
    weights = torch.rand_like(problem.measurement) + 0.5
    noisier = (
        problem.operator.forward(problem.reference)
        + (problem.measurement - problem.operator.forward(problem.reference)) / weights.sqrt()
    )
    weighted = replace(problem, measurement=noisier, weights=weights)
    assert torch.allclose(chi2(weighted, problem.reference), chi2(problem, problem.reference))
    assert chi2(replace(problem, noise_sigma=0.0), problem.reference).tolist() == [0, 0, 0]


def test_rays_without_weight_and_samples_that_were_not_measured_do_not_count():
    problem = dense_problem(rows=4000, noise=NOISE)
    weights = torch.ones_like(problem.measurement)
    weights[..., ::2] = 0
    broken = problem.measurement.clone()
    broken[..., ::2] = 1e6
    half = replace(problem, measurement=broken, weights=weights)
    assert float(chi2(half, problem.reference)) == pytest.approx(1, abs=0.1)


def test_an_image_that_fits_the_noise_makes_the_measurement_trusted_less_and_back_again():
    problem = dense_problem(rows=400, noise=NOISE, batch=2)
    step = DataStep(problem, DataStepSettings(discrepancy_late=False))
    start = step.rho(0.1)
    noise = problem.measurement - problem.operator.forward(problem.reference)
    scale = torch.tensor([0.5, 1.0]).double().view(2, 1, 1, 1)  # the first slice overfits
    step.learn(scale * noise, noise, 0.5)
    grown = step.rho(0.1) / start
    assert float(grown[0]) > 2
    assert float(grown[1]) < 1.3
    for _ in range(20):
        step.learn(2 * noise, 2 * noise, 0.5)
    assert torch.allclose(step.rho(0.1), start, rtol=1e-6)  # early, never more than its noise says


def test_late_a_prior_that_keeps_the_image_from_fitting_is_trusted_less():
    problem = dense_problem(rows=400, noise=NOISE)
    noise = problem.measurement - problem.operator.forward(problem.reference)
    step = DataStep(problem, DataStepSettings())
    start = step.rho(0.1)
    step.learn(2 * noise, 0.9 * noise, 0.01)  # the data step fits: z will follow
    assert torch.equal(step.rho(0.1), start)
    step.learn(2 * noise, 2 * noise, 0.01)
    assert float(step.rho(0.1) / start) < 0.5
    for _ in range(20):
        step.learn(2 * noise, 2 * noise, 0.01)
    assert float(step.rho(0.1) / start) == pytest.approx(1 / MOST_TRUST, rel=0.01)


def test_the_rule_waits_until_the_noise_of_a_pixel_is_reached_and_old_records_do_not():
    problem = dense_problem(rows=400, noise=NOISE)
    noise = problem.measurement - problem.operator.forward(problem.reference)
    level = float(pixel_noise(problem))
    settings = DataStepSettings()
    was = DataStepSettings(**(DataStepSettings.recorded({"discrepancy": True})))
    assert (was.discrepancy_late, settings.discrepancy_late) == (False, True)
    for rule, sigma, changes in ((settings, 1.1, False), (settings, 0.9, True), (was, 1.1, True)):
        step = DataStep(problem, rule)
        start = step.rho(0.1)
        step.learn(0.5 * noise, 0.5 * noise, sigma * level)
        assert bool(step.rho(0.1) > start) == changes


def test_the_trust_falls_no_further_once_the_data_step_is_above_the_noise():
    problem = dense_problem(rows=400, noise=NOISE)
    noise = problem.measurement - problem.operator.forward(problem.reference)
    step = DataStep(problem, DataStepSettings())
    step.learn(0.7 * noise, 0.7 * noise, 1e-4)
    reached = step.rho(0.1)
    step.learn(0.9 * noise, 1.2 * noise, 1e-4)
    assert step.rho(0.1) <= reached


def test_an_answer_above_the_noise_is_brought_to_it_and_others_are_left_alone():
    problem = dense_problem(rows=400, noise=NOISE, batch=2)
    z = problem.reference + torch.tensor([0.2, 0.0]).double().view(2, 1, 1, 1)
    step = DataStep(problem, DataStepSettings(cg_iterations=40))
    image = step.answer(z, problem.residual(z), 0.01)
    assert float(chi2(problem, z)[0]) > 2
    assert chi2(problem, image).tolist() == pytest.approx([1, 1], abs=0.1)
    assert torch.equal(image[1], z[1])
    old = DataStep(problem, DataStepSettings(discrepancy_late=False))
    assert old.answer(z, problem.residual(z), 0.01) is z


def test_a_pixel_measured_alone_has_the_noise_over_the_length_of_its_column():
    problem = dense_problem(rows=4000, noise=NOISE)
    columns = problem.operator.matrix.square().sum(0).mean().sqrt()
    assert float(pixel_noise(problem)) == pytest.approx(NOISE / float(columns), rel=0.2)
    weighted = replace(problem, weights=torch.full_like(problem.measurement, 4.0))
    assert torch.allclose(pixel_noise(weighted), pixel_noise(problem) / 2)


def test_the_last_noise_level_follows_the_noise_where_it_sets_rho():
    problem = dense_problem(rows=400, noise=NOISE)
    level = float(pixel_noise(problem)) / 3
    last = DcPnpdpSettings().sigmas(problem)[-1]
    assert level / 2**0.51 < last < level * 2**0.51
    louder = replace(problem, noise_sigma=8 * NOISE)
    assert DcPnpdpSettings().sigmas(louder)[-1] == pytest.approx(min(8 * last, 2.0))
    silent = replace(problem, noise_sigma=0.0)
    for settings, of in (
        (DcPnpdpSettings(), silent),
        (DcPnpdpSettings(rho_over_sigma2=NOISE**2), problem),
        (DcPnpdpSettings(**DcPnpdpSettings.recorded({})), problem),
    ):
        assert settings.sigmas(of)[-1] == pytest.approx(0.002, rel=1e-12)
    assert DcPnpdpSettings(sigma_min=0.01).sigmas(problem)[-1] == pytest.approx(0.01)


def test_the_rule_is_off_with_a_rho_of_ones_own_without_noise_and_on_request():
    problem = dense_problem(noise=NOISE)
    for settings in ({"rho": 0.1}, {"rho_over_sigma2": 0.1}, {"discrepancy": False}):
        step = DataStep(problem, DataStepSettings(**settings))
        rho = step.rho(0.1)
        step.learn(*2 * [torch.zeros_like(problem.measurement) + 1e-6], 0.5)
        assert step.rho(0.1) == rho
    assert not DataStep(replace(problem, noise_sigma=0.0), DataStepSettings()).meets_noise


@pytest.mark.parametrize("sigma", [0.3, 0.002])
def test_a_data_step_at_the_noise_leaves_a_residual_as_large_as_the_noise(sigma):
    problem = dense_problem(rows=400, noise=NOISE, batch=2)
    v = problem.reference + torch.tensor([0.2, 1.0]).double().view(2, 1, 1, 1)
    step = DataStep(problem, DataStepSettings(cg_iterations=40))
    x = step.at_the_noise(v, sigma)
    assert chi2(problem, x).tolist() == pytest.approx([1, 1], abs=0.1)


def test_what_the_rule_has_learnt_is_part_of_the_state():
    problem = dense_problem(noise=NOISE)
    step = DataStep(problem, DataStepSettings())
    step.learn(*2 * [0.3 * NOISE * torch.ones_like(problem.measurement)], 0.002)
    again = DataStep(problem, DataStepSettings(), step.state)
    assert torch.equal(again.rho(0.1), step.rho(0.1))
    assert float(again.rho(0.1) / DataStep(problem, DataStepSettings()).rho(0.1)) > 1


@pytest.mark.parametrize("method", ["dc-pnpdp", "diffpir"])
@pytest.mark.parametrize(
    ("scan", "asked"),
    [
        ("demo:ct", {"views": 60, "photons": 1e5}),
        ("demo:ct", {"views": 30, "photons": 1e4, "angular_range": 120.0}),
        ("demo:mri", {"acceleration": 4.0, "kspace_noise": 0.05}),
        ("demo:mri", {"acceleration": 4.0, "kspace_noise": 0.03, "coils": 4}),
    ],
)
def test_runs_of_every_modality_end_with_a_reduced_chi_square_near_one(method, scan, asked):
    dataset = open_input(scan, InputOptions(size=128))
    prior = load_prior("auto", dataset.modality, False)
    problem = dataset.problem([0], asked, prior.info.intensity, 0)
    solver = find_solver(method)
    more = {"sigma_max": 0.5} if dataset.modality == "MR" else {}
    settings = solver.settings_class.pick({"nfe": 50, **more})
    with torch.no_grad():
        *_, last = solver.iterate(problem, with_air(prior, problem), settings, [make_generator(0)])
    assert 0.85 < float(chi2(problem, last.image)) < 1.15
