"""A slice comes out the same alone and among others."""

import pytest
import torch
from helpers import FunctionPrior, dense_problem
from solver_cases import IDS, SOLVERS

from engine.runs.run import Run


@pytest.mark.parametrize(("solver", "values"), SOLVERS, ids=IDS)
def test_a_slice_does_not_depend_on_its_batch(solver, values):
    """On a well-conditioned operator: elsewhere CG makes much of the last bit, which depends on
    how many images a matrix product takes at once.
    """
    settings, images = solver.settings_class(**values), []
    for chosen in (slice(0, 2), slice(1, 2)):
        problem = dense_problem(rows=150, size=12, batch=2)
        matrix = problem.operator.matrix.abs()  # SIRT needs positive lengths
        problem.operator.matrix = torch.eye(*matrix.shape, dtype=matrix.dtype) + 0.1 * matrix
        problem.reference = problem.reference[chosen]
        problem.measurement = problem.operator.forward(problem.reference)
        problem.slices = problem.slices[chosen]
        run = Run(problem, solver, settings, FunctionPrior(lambda x, sigma: x / (1 + sigma**2)))
        assert [it.k for it in run] == list(range(1, 9))
        images.append(run.image)
    torch.testing.assert_close(images[0][1:], images[1], rtol=1e-9, atol=1e-9)
