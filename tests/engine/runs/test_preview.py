"""The quick first image: near the truth for what it costs, and no part of the run."""

import dataclasses

import numpy as np
import pytest
import torch

from engine.physics.coarse import CoarseOperator
from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.runs.frames import pictures_of
from engine.runs.prepare import make_run, prepare
from engine.runs.preview import CALLS, coarser, factor_for, previews
from engine.runs.run import image_sha256
from engine.spec.job import Job

SETTINGS = {"nfe": 50, "cg_iterations": 3}


def prepared(source="demo:ct", **changes):
    values = {"acquisition": {"views": 20}, "prior": "tv", "settings": SETTINGS, **changes}
    return prepare(Job(source, device="cpu", **values))


def test_a_coarse_operator_and_its_adjoint_are_a_pair():
    geometry = CTGeometry.sparse_view(12, size=32)
    operator = CoarseOperator(CTOperator(geometry), 2)
    x, y = torch.randn(2, *operator.image_shape), torch.randn(2, *operator.measurement_shape)
    ours, theirs = (operator.forward(x) * y).sum(), (x * operator.adjoint(y)).sum()
    assert float(ours) == pytest.approx(float(theirs), rel=1e-4)


@pytest.mark.parametrize("source", ["demo:ct", "demo:mri"])
def test_previews_are_of_the_size_of_the_run_and_nearer_to_the_truth_than_the_direct_image(source):
    scan = {"views": 20} if source == "demo:ct" else {"acceleration": 6}
    ready = prepared(source, acquisition=scan)
    problem = ready.problem
    seen = list(previews(ready))
    assert 1 <= len(seen) <= CALLS
    truth = pictures_of(problem, problem.reference)[0]
    direct = pictures_of(problem, problem.operator.pseudo_inverse(problem.measurement))[0]
    assert all(one.image.shape == truth.shape for one in seen)
    assert {one.factor for one in seen} == {2}
    assert np.mean((seen[-1].image - truth) ** 2) < np.mean((direct - truth) ** 2)


def test_a_run_after_a_preview_has_the_bits_of_one_without():
    short = {"nfe": 3, "cg_iterations": 3}

    def result(with_preview):
        ready = prepared()
        if with_preview:
            assert list(previews(ready))
        run = make_run(dataclasses.replace(ready, settings=ready.settings.from_dict(short)))
        for _ in run:
            pass
        assert run.last.nfe == 3
        assert len(run.record.history) == 3
        return image_sha256(run.image)

    assert result(with_preview=True) == result(with_preview=False)


def test_no_preview_where_the_run_itself_is_as_quick_or_the_method_has_no_noise_levels():
    assert factor_for(prepared()) == 2
    assert factor_for(prepared(settings={"nfe": 8})) == 1
    assert factor_for(prepared(solver="fbp", settings={})) == 1
    small = prepared()
    small.problem = coarser(small.problem, 2)
    assert factor_for(small) == 1
