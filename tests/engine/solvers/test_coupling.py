"""Coupled slices: one linear system, solved exactly, and nothing at all when it is off."""

import pytest
import torch
from helpers import dense_matrix, dense_problem, relative

from engine.solvers.coupling import Coupling
from engine.solvers.data_step import DataStep, DataStepSettings
from engine.spec.errors import RequestError

EXACT = {"cg_iterations": 400, "cg_tolerance": 1e-14}


def stack(problem):
    generator = torch.Generator().manual_seed(3)
    shape = (len(problem.measurement), *problem.operator.image_shape)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def second_difference(count):
    step = torch.diff(torch.eye(count, dtype=torch.float64), dim=0)
    return step.T @ step


def dense_solution(problem, v, rho, weight):
    """(I (x) A^T A + rho (I + w L) (x) I) x = A^T y + rho v, as one large matrix."""
    a, count = dense_matrix(problem.operator), len(v)
    eye_z, eye = torch.eye(count, dtype=a.dtype), torch.eye(a.shape[1], dtype=a.dtype)
    along_z = eye_z + weight * second_difference(count)
    matrix = torch.kron(eye_z, a.T @ a) + rho * torch.kron(along_z, eye)
    rhs = torch.stack([a.T @ y.flatten() for y in problem.measurement]) + rho * v.flatten(1)
    return torch.linalg.solve(matrix, rhs.flatten()).view_as(v)


@pytest.mark.parametrize("weight", [0.1, 5.0])
@pytest.mark.parametrize("rho", [1e-9, 1e-3, 2.0])
def test_the_coupled_step_is_the_dense_solution(rho, weight):
    problem = dense_problem(rows=20, batch=4)  # fewer rows than pixels: much is not measured
    v = stack(problem)
    solved = DataStep(problem, DataStepSettings(rho=rho, couple_z=weight, **EXACT))(v, 1.0)
    assert relative(solved, dense_solution(problem, v, rho, weight)) < 1e-6


def test_what_is_not_measured_is_smoothed_alike_at_every_rho():
    problem, wanted = dense_problem(rows=20, batch=5), None
    v = stack(problem)
    a = dense_matrix(problem.operator)
    blind = torch.eye(36, dtype=a.dtype) - torch.linalg.pinv(a) @ a
    for rho in (0.0, 1e-10, 1e-6, 1e-3):
        settings = DataStepSettings(rho=rho, couple_z=2.0, cg_iterations=20, cg_tolerance=1e-4)
        seen = DataStep(problem, settings)(v, 1.0).flatten(1) @ blind
        wanted = seen if wanted is None else wanted
        assert relative(seen, wanted) < 0.05
        assert seen.diff(dim=0).norm() < 0.5 * (v.flatten(1) @ blind).diff(dim=0).norm()


def test_the_coupling_is_symmetric_positive_definite_and_inverted_exactly():
    x, y = stack(dense_problem(batch=5)), torch.randn(5, 1, 6, 6, dtype=torch.float64)
    near = Coupling(3.0, x)
    along_z = torch.eye(5, dtype=torch.float64) + 3.0 * second_difference(5)
    assert torch.linalg.eigvalsh(along_z).min() >= 1 - 1e-12
    assert relative(near.apply(x).flatten(1), along_z @ x.flatten(1)) < 1e-14
    assert relative(near.solve(near.apply(x)), x) < 1e-12
    assert float((near.apply(x) * y).sum()) == pytest.approx(float((x * near.apply(y)).sum()))
    assert float((near.apply(x) * x).sum()) >= float((x * x).sum())


def test_off_is_the_same_bits_and_a_single_slice_has_no_neighbours():
    problem = dense_problem(batch=3)
    v = stack(problem)
    plain, off = (DataStep(problem, DataStepSettings(**c)) for c in ({}, {"couple_z": 0.0}))
    assert torch.equal(plain(v, 0.5), off(v, 0.5))
    alone = dense_problem(batch=1)
    coupled = DataStep(alone, DataStepSettings(couple_z=2.0))
    assert torch.equal(coupled(v[:1], 0.5), DataStep(alone, DataStepSettings())(v[:1], 0.5))


def test_the_filtered_preconditioner_has_the_same_solution():
    from engine.physics.ct import CTOperator
    from engine.physics.geometry import CTGeometry
    from engine.physics.problem import Problem
    from engine.physics.units import IntensityMap

    operator = CTOperator(CTGeometry.sparse_view(views=12, size=(16, 16), pixel_mm=1.0))
    v = torch.randn(3, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    problem = Problem(operator, operator.forward(0.7 * v), IntensityMap("hu", 1000.0), "CT")
    steps = [
        DataStep(problem, DataStepSettings(rho=0.5, couple_z=1.0, preconditioner=kind, **EXACT))
        for kind in ("none", "filtered")
    ]
    plain, filtered = (step(v, 1.0) for step in steps)
    assert relative(filtered, plain) < 1e-4


def test_slices_of_unequal_noise_share_one_rho():
    problem = dense_problem(rows=20, batch=3)
    problem.noise_sigma = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64).view(-1, 1, 1, 1)
    step = DataStep(problem, DataStepSettings(couple_z=2.0, **EXACT))
    v, rho = stack(problem), float(step.rho(0.5).mean())
    assert relative(step(v, 0.5), dense_solution(problem, v, rho, 2.0)) < 1e-6


def test_slices_that_are_not_neighbours_are_not_coupled():
    problem = dense_problem(batch=3)
    problem.slices = (0, 2, 4)
    with pytest.raises(RequestError, match="neighbouring slices"):
        DataStep(problem, DataStepSettings(couple_z=1.0))
