"""What is said about a result: true, short, and without touching the result."""

import json
from dataclasses import replace

import pytest
import torch
from helpers import FunctionPrior, dense_problem

from engine.cli.reconstruct import summary
from engine.export.report import page
from engine.files.checkpoint import Checkpoint
from engine.files.record import RunRecord
from engine.priors.familiarity import Familiarity
from engine.runs import verdicts as module
from engine.runs.certificate import certify
from engine.runs.run import Run
from engine.runs.verdicts import (
    LIKE,
    NOISE,
    UNLIKE,
    closest,
    doubts_prior,
    noise_sentence,
    verdicts,
)
from engine.solvers.classical import CGTikhonov
from engine.solvers.dc_pnpdp import DcPnpdp
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError

LEVEL = {"low": (-90.0, -90.0), "high": (90.0, 90.0), "slices": 20, "sources": 3}


def prior(expected_db):
    """A denoiser that is usually ``expected_db`` worse than thresholding."""
    made = FunctionPrior(lambda x, sigma: x / (1 + sigma**2))
    known = Familiarity(((expected_db, 0.0, 0.0),) * 4, (1.0,) * 4, **LEVEL)
    made.info.details["familiarity"] = known.to_dict()
    return made


def run(denoiser, path=None, control=None, **values):
    problem = dense_problem(rows=150, size=12, batch=2, noise=0.1)
    return Run(
        problem,
        DcPnpdp(),
        DcPnpdp.settings_class(nfe=8, **values),
        denoiser,
        record_path=path,
        checkpoint_seconds=0,
        control=control,
    )


def finish(made):
    for _ in made:
        pass
    return made


def test_a_finished_run_says_whether_its_prior_knows_the_image(tmp_path):
    foreign = finish(run(prior(-100.0), tmp_path / "run.json"))
    assert foreign.record.verdicts["prior"].startswith(UNLIKE)
    assert "prefer TV" in foreign.record.verdicts["prior"]
    assert doubts_prior(foreign.record.verdicts)
    body = json.loads((tmp_path / "run.json").read_text())
    assert body["verdicts"] == foreign.record.verdicts
    familiar = finish(run(prior(100.0)))
    assert familiar.record.verdicts["prior"] == f"{LIKE}."
    assert not doubts_prior(familiar.record.verdicts)


def test_verdicts_do_not_change_the_bits_of_the_result(monkeypatch):
    looked = finish(run(prior(-100.0)))
    state = torch.random.get_rng_state()
    monkeypatch.setattr("engine.runs.run.verdicts", lambda *rest: {})
    plain = finish(run(prior(-100.0)))
    assert plain.record.verdicts == {}
    assert looked.record.result_sha256 == plain.record.result_sha256
    assert torch.equal(torch.random.get_rng_state(), state)
    for a, b in zip(looked.generators, plain.generators, strict=True):
        assert torch.equal(a.get_state(), b.get_state())


def test_a_resumed_run_says_the_same_as_an_uninterrupted_one(tmp_path):
    whole = finish(run(prior(-100.0)))
    path, control = tmp_path / "run.json", RunControl()
    first = run(prior(-100.0), path, control)
    for iteration in first:
        if iteration.k == 3:
            control.cancel()
    assert list(first.record.verdicts) == ["summary"]  # a cancelled run has no result to judge
    assert "not a finished result" in first.record.verdicts["summary"]
    second = run(prior(-100.0), path)
    second.record = RunRecord.read(path)
    second.resume_from(Checkpoint.read(Checkpoint.path_beside(path)))
    finish(second)
    assert torch.equal(second.image, whole.image)
    assert second.record.verdicts == whole.record.verdicts


def test_a_run_finished_early_is_judged_too():
    control = RunControl()
    made = run(prior(-100.0), control=control)
    for iteration in made:
        if iteration.k == 3:
            control.finish()
    assert list(made.record.verdicts) == ["summary", "noise", "prior"]


def test_the_true_image_fits_within_the_noise_and_the_data_fitted_do_not():
    problem = dense_problem(rows=400, size=12, noise=0.1)
    said = noise_sentence(certify(problem, problem.reference))
    assert said.startswith(f"{NOISE['fits']}: reduced chi-square 1")
    overfitted = finish(
        Run(problem, CGTikhonov(), CGTikhonov.settings_class(iterations=60, stop_at_noise=False))
    )
    assert overfitted.record.verdicts["noise"].startswith(NOISE["closer"])
    wrong = noise_sentence(certify(problem, problem.reference + 1))
    assert wrong.startswith(NOISE["worse"])


def test_without_a_noise_level_nothing_is_claimed_about_noise():
    problem = dense_problem(rows=40, size=6)
    problem.provenance["simulated"] = False
    said = noise_sentence(certify(problem, problem.reference))
    assert said.startswith("Noise level not known:")


def test_of_several_slices_the_worst_is_told():
    problem = dense_problem(rows=400, size=12, batch=3, noise=0.1)
    image = problem.reference.clone()
    assert ":" in noise_sentence(certify(problem, image))
    image[1] += 1
    said = noise_sentence(certify(problem, image))
    assert said.startswith(f"{NOISE['worse']} in 1 of 3 slices: reduced chi-square ")
    found = module.prior_sentence(prior(-100.0), image, "MR")
    assert found == f"{UNLIKE} (3 of 3 slices): prefer TV or SENSE, or another prior."


@pytest.mark.parametrize("modality", ["CT", "MR"])
def test_every_verdict_begins_with_its_short_form(modality):
    said = module.prior_sentence(prior(-100.0), torch.zeros(1, 1, 16, 16), modality)
    assert said.split(":")[0] == UNLIKE
    assert all(":" not in short and len(short) < 50 for short in (*NOISE.values(), LIKE, UNLIKE))


def test_a_look_that_fails_leaves_the_run_alone(monkeypatch):
    def broken(*rest):
        raise DualscopeError("no memory")

    monkeypatch.setattr(module, "certify", broken)
    done = finish(run(prior(-100.0)))
    assert done.status == "done"
    assert set(done.record.verdicts) == {"prior"}


def test_an_image_that_is_not_finite_is_not_judged():
    problem = dense_problem()
    assert verdicts(problem, prior(0.0), torch.full_like(problem.reference, torch.nan)) == {}


def test_the_summary_tells_the_verdicts_and_names_the_comparison(capsys):
    summary(finish(run(prior(-100.0))))
    out = capsys.readouterr().out
    assert UNLIKE in out
    assert "--solver tv" in out
    summary(finish(run(prior(100.0))))
    assert "--solver tv" not in capsys.readouterr().out


def test_a_report_says_the_verdicts_below_the_image():
    done = finish(run(prior(-100.0)))
    text = page(done.problem, [("ours", done)], None, "Report", deidentify=False)
    assert all(sentence in text for sentence in done.record.verdicts.values())


def test_data_that_no_image_fits_are_said_not_to_fit_the_model_of_the_scan():
    problem = dense_problem(rows=400, size=8, noise=0.05)
    problem = replace(problem, modality="MR", provenance={"simulated": False})
    far = problem.reference + 1
    at_best = closest(problem, far)
    assert at_best < 1.1, "the image is at fault, not the data"
    assert "model of the scan" not in noise_sentence(certify(problem, far), at_best)
    strange = problem.measurement + torch.randn(
        problem.measurement.shape, generator=torch.Generator().manual_seed(0)
    ).to(problem.measurement)
    wrong = replace(problem, measurement=strange)
    said = verdicts(wrong, None, far)["noise"]
    assert said.startswith(NOISE["worse"])
    assert "The data do not fit the model of the scan" in said
    assert closest(problem, problem.reference) is None, "it fits: there is nothing to ask"
    assert closest(replace(wrong, provenance={"simulated": True}), far) is None
