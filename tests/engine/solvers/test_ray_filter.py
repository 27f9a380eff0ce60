"""The data step from the measurement's side: the same image, in fewer steps from few views."""

import pytest
import torch
from helpers import dense_problem, limited_angle_problem, relative

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.phantoms import ct_phantom
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.preconditioner import RayFilter
from engine.spec.errors import RequestError

EXACT = {"cg_iterations": 600, "cg_tolerance": 1e-12, "cg_warm_start": False}


def smoothed(image):
    return torch.nn.functional.avg_pool2d(image, 3, 1, 1)


def few_views():
    """12 views over 180 degrees of two different slices, and a guess of each."""
    operator = CTOperator(CTGeometry.sparse_view(12, 180.0, size=64), dtype=torch.float64)
    images = torch.zeros(2, 1, 64, 64, dtype=torch.float64)
    images[:, :, 12:50, 10:54] = 1
    images[0, :, 20:30, 20:40] = -0.5
    images[1, :, 30:44, 24:30] = 3
    problem = Problem(operator, operator.forward(images), IntensityMap("hu", 1000.0), "CT")
    return problem, smoothed(images)


def weighted(problem):
    """With weights over three orders of magnitude, and some rays that do not count at all."""
    generator = torch.Generator().manual_seed(2)
    problem.weights = 10 ** (3 * torch.rand(problem.measurement.shape, generator=generator) - 2)
    problem.weights = problem.weights.to(problem.measurement)
    problem.weights[:, :, 3, 40:44] = 0
    return problem


@pytest.mark.parametrize("rho", [0.05, 5.0, torch.tensor([0.5, 50.0]).double().view(2, 1, 1, 1)])
@pytest.mark.parametrize("weights", [False, True])
def test_the_converged_image_is_that_of_plain_conjugate_gradients(rho, weights):
    problem, v = few_views()
    problem = weighted(problem) if weights else problem
    answers = []
    for kind in ("none", "ramp"):
        step = DataStep(problem, DataStepSettings(preconditioner=kind, **EXACT))
        step.rho = lambda sigma: rho
        answers.append(step(v, 1.0))
    assert relative(answers[1], answers[0]) < 1e-6


def test_ten_filtered_steps_come_further_than_fifteen_plain_ones():
    """Of a body, from a smoothed image of it, as in a run."""
    geometry = CTGeometry.sparse_view(40, 180.0, size=128)
    operator = CTOperator(geometry, dtype=torch.float64)
    image = torch.from_numpy(ct_phantom(3, 128).image / 1000).double()[None, None]
    problem = Problem(operator, operator.forward(image), IntensityMap("hu", 1000.0), "CT")
    v = smoothed(image)
    rho = 1e-5 * operator.norm() ** 2

    def change(kind, steps):
        settings = {**EXACT, "cg_iterations": steps, "rho": rho, "preconditioner": kind}
        return DataStep(problem, DataStepSettings(**settings))(v, 1.0) - v

    exact = change("none", 600)
    assert relative(change("ramp", 10), exact) < relative(change("none", 15), exact)


def test_ct_takes_it_without_being_asked_and_nothing_else_does():
    problem, _ = few_views()
    assert DataStep(problem, DataStepSettings()).rays is not None
    limited = DataStep(limited_angle_problem()[0], DataStepSettings())
    assert limited.rays is None
    assert limited.eigenvalues is not None
    assert DataStep(problem, DataStepSettings(preconditioner="filtered")).rays is None
    assert DataStep(problem, DataStepSettings(couple_z=1.0)).rays is None
    other = dense_problem()
    assert DataStep(other, DataStepSettings()).rays is None
    with pytest.raises(RequestError, match="CT scans only"):
        DataStep(other, DataStepSettings(preconditioner="ramp"))


def test_a_slice_does_not_depend_on_the_others():
    problem, v = few_views()
    problem = weighted(problem)
    problem.weights[1] *= 100
    step = DataStepSettings(rho=1.0)
    both = DataStep(problem, step)(v, 1.0)
    problem.measurement, problem.weights = problem.measurement[:1], problem.weights[:1]
    torch.testing.assert_close(DataStep(problem, step)(v[:1], 1.0), both[:1], rtol=0, atol=1e-12)


def test_it_goes_on_where_it_stopped_also_after_a_resume():
    problem, v = few_views()
    settings = DataStepSettings(rho=1e-6 * problem.operator.norm() ** 2, cg_iterations=4)
    exact = DataStep(problem, DataStepSettings(rho=settings.rho, **EXACT))(v, 1.0)
    step = DataStep(problem, settings)
    first = relative(step(v, 1.0), exact)
    assert all(value.is_contiguous() for value in step.state.values()), "as checkpoints need it"
    resumed = DataStep(problem, settings, step.state)
    second = step(v, 1.0)
    assert relative(second, exact) < 0.9 * first
    assert torch.equal(resumed(v, 1.0), second)


def test_a_perfect_guess_stays_and_nothing_measured_changes_nothing():
    problem, _ = few_views()
    image = problem.operator.pseudo_inverse(problem.measurement)
    for measurement in (problem.operator.forward(image), torch.zeros_like(problem.measurement)):
        problem.measurement = measurement
        v = image if measurement.any() else torch.zeros_like(image)
        step = DataStep(problem, DataStepSettings(rho=1.0))
        for _ in range(2):
            torch.testing.assert_close(step(v, 1.0), v, rtol=0, atol=1e-12)


def test_in_float32_hundreds_of_steps_do_not_lose_the_image():
    """Far more than are of use; the filter on the image's side loses less."""
    exact, image = limited_angle_problem()
    settings = DataStepSettings(
        rho=1e-8 * exact.operator.norm() ** 2,
        preconditioner="ramp",
        cg_tolerance=0.0,
        cg_iterations=400,
    )
    v = 0.8 * image
    change = DataStep(exact, settings)(v, 1.0) - v
    operator = CTOperator(exact.operator.geometry)
    single = Problem(operator, exact.measurement.float(), exact.intensity, "CT")
    found = DataStep(single, settings)(v.float(), 1.0) - v.float()
    assert relative(found.double(), change) < 0.05


def test_where_rho_outweighs_the_measurement_the_filter_divides_by_it():
    problem, _ = few_views()
    r = torch.randn(problem.measurement.shape, dtype=torch.float64)
    rho = 1e9 * problem.operator.norm() ** 2
    solved = RayFilter(problem.operator, None).solve(rho)(r)
    torch.testing.assert_close(rho * solved, r, rtol=1e-6, atol=1e-6)
