"""Conjugate gradients on the measurement's side, and the memory of the data step."""

import torch
from helpers import dense_problem, limited_angle_problem, relative

from engine.physics.cg import conjugate_gradients
from engine.physics.ct import CTOperator
from engine.physics.problem import Problem
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.solvers.least_squares import damped_least_squares
from engine.solvers.preconditioner import circulant_eigenvalues, circulant_solve

RHO = 0.3


def systems(batch=3, rows=20, size=4):
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(batch, rows, size * size, generator=generator, dtype=torch.float64)
    weights = torch.rand(batch, rows, generator=generator, dtype=torch.float64) + 0.1
    target = torch.randn(batch, rows, generator=generator, dtype=torch.float64)
    return matrices, weights, target


def solve(matrices, weights, target, iterations, **options):
    size = int(matrices.shape[-1] ** 0.5)
    start = options.pop("start", torch.zeros(len(matrices), 1, size, size, dtype=torch.float64))

    def forward(x):
        return (matrices @ x.flatten(1).unsqueeze(-1))[..., 0]

    def adjoint(y):
        return (matrices.mT @ y.unsqueeze(-1)).view_as(start)

    def flat(map):  # the scalars of a sample broadcast over images, here also over rows
        return lambda x: map(x).view(len(matrices), 1, 1, -1)

    return damped_least_squares(
        flat(forward),
        lambda y: adjoint(y.flatten(1)),
        lambda y: weights.view_as(y) * y,
        (target - forward(start)).view(len(matrices), 1, 1, -1),
        start,
        RHO,
        iterations,
        **options,
    )


def direct(matrices, weights, target):
    weighted = weights[:, :, None] * matrices
    normal = matrices.mT @ weighted + RHO * torch.eye(matrices.shape[-1], dtype=torch.float64)
    return torch.linalg.solve(normal, (weighted.mT @ target.unsqueeze(-1)))[..., 0]


def test_solves_every_sample_of_a_batch_from_any_start():
    matrices, weights, target = systems()
    expected = direct(matrices, weights, target)
    for start in (torch.zeros(3, 1, 4, 4), torch.randn(3, 1, 4, 4)):
        x = solve(matrices, weights, target, 60, start=start.double())
        assert relative(x.flatten(1), expected) < 1e-9


def test_a_preconditioner_changes_the_path_but_not_the_answer():
    matrices, weights, target = systems()
    scale = torch.logspace(-1, 1, 16, dtype=torch.float64).view(1, 1, 4, 4)
    x = solve(matrices, weights, target, 100, precondition=lambda r: r * scale)
    assert relative(x.flatten(1), direct(matrices, weights, target)) < 1e-9


def test_a_sample_does_not_depend_on_the_others():
    matrices, weights, target = systems()
    loud = target.clone()
    loud[1:] *= 1e6
    alone = solve(matrices[:1], weights[:1], target[:1], 5)
    for right in (target, loud):
        torch.testing.assert_close(
            solve(matrices, weights, right, 5)[:1], alone, rtol=1e-12, atol=1e-12
        )


def test_a_solved_start_is_returned_unchanged_and_a_zero_one_gives_no_nan():
    matrices, weights, target = systems()
    solution = direct(matrices, weights, target).view(3, 1, 4, 4)
    assert torch.equal(solve(matrices, weights, target, 20, start=solution, limit=1e-8), solution)
    nothing = solve(matrices, weights, torch.zeros_like(target), 20)
    assert torch.equal(nothing, torch.zeros_like(nothing))


def test_in_float32_many_preconditioned_steps_lose_little():
    """Of a limited-angle scan, where the same steps on the image's side go far astray."""
    exact, image = limited_angle_problem()
    rho = 1e-8 * exact.operator.norm() ** 2
    steps = DataStepSettings(
        rho=rho, preconditioner="filtered", cg_tolerance=0.0, cg_iterations=400
    )
    v = 0.8 * image
    change = DataStep(exact, steps)(v, 1.0) - v
    operator = CTOperator(exact.operator.geometry)
    single = Problem(operator, exact.measurement.float(), exact.intensity, "CT")
    data, start = DataStep(single, steps), v.float()
    eigenvalues = circulant_eigenvalues(data.normal, start, steps.preconditioner_floor)
    beside = conjugate_gradients(
        lambda x: data.normal(x) + rho * x,
        data.back_projection + rho * start,
        start,
        400,
        precondition=circulant_solve(eigenvalues, rho),
    )
    astray = relative((beside - start).double(), change)
    lost = relative((data(start, 1.0) - start).double(), change)
    assert lost < 0.02
    assert astray > 5 * lost


def test_the_data_step_begins_where_the_last_one_ended():
    """The same request again is answered better, and without warm start exactly as before."""
    problem, _ = limited_angle_problem()
    rho = 1e-6 * problem.operator.norm() ** 2
    start = problem.operator.pseudo_inverse(problem.measurement)
    long = DataStepSettings(rho=rho, cg_iterations=3000, cg_tolerance=0.0)
    exact = DataStep(problem, long)(start, 1.0)
    warm = DataStep(problem, DataStepSettings(rho=rho, cg_iterations=10))
    cold = DataStep(problem, DataStepSettings(rho=rho, cg_iterations=10, cg_warm_start=False))
    errors = [relative(warm(start, 1.0), exact) for _ in range(4)]
    assert errors[3] < errors[2] < errors[1] < 0.9 * errors[0]
    first = cold(start, 1.0)
    assert torch.equal(first, cold(start, 1.0))
    assert cold.state == {}


def test_a_warm_start_in_the_wrong_direction_costs_nothing():
    """However useless the last correction is, the first image is no worse than without it."""
    problem = dense_problem(seed=3)
    settings = DataStepSettings(rho=0.2, cg_iterations=1)
    v = torch.zeros_like(problem.reference)

    def cost(x):
        return float(problem.residual(x).square().sum() + 0.2 * (x - v).square().sum())

    for seed in range(5):
        torch.manual_seed(seed)
        data = DataStep(problem, settings, {"correction": 10 * torch.randn_like(v)})
        begin, missing = data._begin(v, 0.2)
        assert cost(v + begin) <= cost(v)
        assert relative(missing, -problem.residual(v + begin)) < 1e-12
