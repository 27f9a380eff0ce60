"""The share of the edges that the prior supplied, and the one line that tells of a result."""

import dataclasses

import numpy as np
import pytest
import torch

from engine.runs.detail import detail_shares, edges, supplied_detail
from engine.runs.prepare import make_run, prepare
from engine.runs.run import moved
from engine.runs.verdicts import STILL, SUMMARY, summary
from engine.spec.job import Job
from engine.workflows.trust.split import Splitter


def run_of(source="demo:ct", solver="dc-pnpdp", nfe=4, **acquisition):
    settings = {"nfe": nfe} if nfe else {}
    values = {"input": source, "solver": solver, "acquisition": acquisition, "settings": settings}
    run = make_run(prepare(Job.from_dict({**values, "prior": "gaussian", "device": "cpu"})))
    for _ in run:
        pass
    return run


@pytest.mark.parametrize(
    ("acquisition", "within"),
    [({"views": 20}, 0.02), ({"views": 40, "photons": 1e5}, 0.02), ({"angular_range": 90.0}, 0.05)],
    ids=["few views", "photons", "limited angle"],
)
def test_a_few_steps_find_nearly_the_share_of_the_whole_split(acquisition, within):
    run = run_of(**acquisition)
    (quick,) = supplied_detail(run.problem, run.image)
    (whole,) = Splitter(run.problem, run.image)(run.image).detail
    assert quick == pytest.approx(whole, abs=within)


def test_what_the_scan_sees_wholly_has_no_supplied_detail_and_noise_in_the_gap_has():
    run = run_of("demo:mri", nfe=2)
    problem = run.problem
    (before,) = supplied_detail(problem, run.image)
    seen = problem.operator.adjoint(problem.operator.forward(run.image))
    assert supplied_detail(problem, seen)[0] < 1e-3
    noise = torch.randn(run.image.shape, generator=torch.Generator().manual_seed(1))
    unseen = noise - problem.operator.adjoint(problem.operator.forward(noise))
    assert supplied_detail(problem, run.image + 0.2 * unseen)[0] > before + 0.1


def test_every_slice_has_its_own_share_whatever_is_beside_it():
    run = run_of(views=20)
    image = torch.cat([run.image, 0.5 * run.image])
    twice = dataclasses.replace(
        run.problem,
        measurement=run.problem.measurement.repeat(2, 1, 1, 1),
        reference=None,
        slices=(0, 1),
    )
    assert supplied_detail(twice, image)[0] == pytest.approx(
        supplied_detail(run.problem, run.image)[0], abs=1e-4
    )


def test_energy_hides_what_edges_show():
    """An even body with a faint invented texture: its energy is nothing, its edges are all."""
    run = run_of(views=20)
    smooth = torch.zeros_like(run.image)
    texture = 0.01 * torch.from_numpy(np.indices(smooth.shape[-2:]).sum(0) % 2).float()
    (share,) = detail_shares(run.problem, run.image, smooth, texture.expand_as(smooth))
    assert share == 1.0
    assert float(texture.square().mean()) < 1e-4


def test_an_edge_is_as_strong_in_any_direction():
    step = torch.zeros(1, 1, 8, 8)
    step[..., 4:, :] = 1
    assert float(edges(step).sum()) == float(edges(step.transpose(2, 3)).sum()) == 7.0


def test_the_summary_says_fit_change_and_detail():
    run = run_of(views=20)
    line = run.record.verdicts[SUMMARY]
    assert next(iter(run.record.verdicts)) == SUMMARY
    assert "still changing when stopped" in line
    (share,) = supplied_detail(run.problem, run.image)
    assert f"{100 * share:.0f} % of edge detail supplied by the prior" in line
    settled = summary(run.problem, run.prior, run.image, STILL / 2)
    assert "changing" not in settled


def test_a_method_without_a_prior_has_no_detail_supplied_by_one():
    run = run_of(solver="fbp", nfe=0)
    assert "prior" not in run.record.verdicts[SUMMARY]
    assert "changing" not in run.record.verdicts[SUMMARY], "one step changes nothing"


def test_by_how_much_an_image_moved():
    image = torch.tensor([0.0, 2.0]).view(1, 1, 1, 2)
    assert moved(None, image) is None
    assert moved(image, image) == 0.0
    assert moved(image + 1, image) == pytest.approx(1 / float(image.std()))
