"""Conjugate gradients, sample by sample."""

import torch
from helpers import relative

from engine.physics.cg import conjugate_gradients


def systems(batch=3, size=4, spread=1.0):
    generator = torch.Generator().manual_seed(0)
    n = size * size
    root = torch.randn(batch, n, n, generator=generator, dtype=torch.float64)
    scale = torch.logspace(0, spread, n, dtype=torch.float64)
    matrices = root @ (scale[:, None] * root.mT) / n + 0.1 * torch.eye(n, dtype=torch.float64)
    rhs = torch.randn(batch, 1, size, size, generator=generator, dtype=torch.float64)
    return matrices, rhs


def apply(matrices):
    return lambda x: (matrices @ x.flatten(1).unsqueeze(-1)).view_as(x)


def direct(matrices, rhs):
    return torch.linalg.solve(matrices, rhs.flatten(1).unsqueeze(-1)).view_as(rhs)


def test_solves_every_sample_of_a_batch():
    matrices, rhs = systems()
    x = conjugate_gradients(apply(matrices), rhs, torch.zeros_like(rhs), 200)
    assert relative(x, direct(matrices, rhs)) < 1e-9


def test_a_sample_does_not_depend_on_the_others():
    matrices, rhs = systems()
    loud = rhs.clone()
    loud[1:] *= 1e6
    for right in (rhs, loud):
        x = conjugate_gradients(apply(matrices), right, torch.zeros_like(rhs), 7, 1e-3)
        alone = conjugate_gradients(
            apply(matrices[:1]), rhs[:1], torch.zeros_like(rhs[:1]), 7, 1e-3
        )
        torch.testing.assert_close(x[:1], alone, rtol=1e-12, atol=1e-12)


def test_a_solved_start_is_returned_unchanged():
    matrices, rhs = systems()
    solution = direct(matrices, rhs)
    x = conjugate_gradients(apply(matrices), rhs, solution, 50, tolerance=1e-8)
    assert torch.equal(x, solution)


def test_an_exact_zero_residual_gives_no_nan():
    x = conjugate_gradients(lambda v: v, torch.zeros(2, 1, 3, 3), torch.zeros(2, 1, 3, 3), 10)
    assert torch.equal(x, torch.zeros(2, 1, 3, 3))


def test_tolerance_is_relative_to_each_right_hand_side():
    matrices, rhs = systems()
    rhs = rhs * torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64).view(-1, 1, 1, 1)
    x = conjugate_gradients(apply(matrices), rhs, torch.zeros_like(rhs), 500, 1e-6)
    residual = (apply(matrices)(x) - rhs).flatten(1).norm(dim=1) / rhs.flatten(1).norm(dim=1)
    assert (residual < 1.001e-6).all()


def test_a_preconditioner_changes_the_path_but_not_the_answer():
    matrices, rhs = systems(spread=4.0)
    diagonal = matrices.diagonal(dim1=1, dim2=2).view_as(rhs)
    x = conjugate_gradients(
        apply(matrices), rhs, torch.zeros_like(rhs), 500, precondition=lambda r: r / diagonal
    )
    assert relative(x, direct(matrices, rhs)) < 1e-7
