"""The supervised reference: the network applied to the FBP image, once, and what is said of it."""

import json

import pytest
import torch
from supervised_files import write_network

from engine.cli import main
from engine.priors.safetensors_file import load_prior_file
from engine.runs.prepare import make_run, prepare
from engine.spec.job import Job

JOB = {"input": "demo:ct", "options": {"size": 64}, "acquisition": {"views": 12}}


@pytest.fixture
def network(tmp_path):
    return write_network(tmp_path / "net.safetensors", views=12)


def test_the_image_is_the_network_applied_to_the_pseudo_inverse(network):
    prepared = prepare(Job(**JOB, solver="supervised", prior=str(network)))
    run = make_run(prepared)
    (only,) = list(run)
    problem = prepared.problem
    by_hand = load_prior_file(network).denoiser(
        problem.operator.pseudo_inverse(problem.measurement), 0.0
    )
    assert torch.equal(run.image, by_hand)
    assert not torch.equal(run.image, problem.operator.pseudo_inverse(problem.measurement))
    assert (only.k, only.K, only.nfe) == (1, 1, 1)
    assert set(only.seconds) == {"data", "denoiser"}
    residual = problem.residual(by_hand).flatten(1).norm(dim=1)
    assert torch.allclose(only.residual_z, residual)
    assert run.record.metrics["ct-dcpnpdp"]["psnr"] > 5


def test_the_record_says_whether_the_network_knows_the_scan(network):
    job = Job(**JOB, solver="supervised", prior=str(network))
    assert make_run(prepare(job)).record.input["warnings"] == []
    other = Job(**{**JOB, "acquisition": {"views": 30}}, solver="supervised", prior=str(network))
    (warning,) = make_run(prepare(other)).record.input["warnings"]
    assert "views 30 instead of 12" in warning
    plain = Job(**{**JOB, "acquisition": {"views": 30}}, solver="fbp", prior=str(network))
    assert make_run(prepare(plain)).record.input["warnings"] == []


def test_a_shared_problem_in_other_units_is_built_anew(network):
    first = prepare(Job(**JOB, solver="fbp", prior="tv"))
    same = prepare(
        Job(**JOB, solver="supervised", prior=str(network)), first.dataset, first.problem
    )
    assert same.problem is first.problem
    first.problem.intensity = type(first.problem.intensity)("hu", 800.0)
    other = prepare(
        Job(**JOB, solver="supervised", prior=str(network)), first.dataset, first.problem
    )
    assert other.problem.intensity.scale == 1000


def command(tmp_path, *more):
    out = ["-o", str(tmp_path / "x.npy"), "--record", str(tmp_path / "run.json"), "--quiet"]
    return main(["reconstruct", "demo:ct", "--size", "64", "--views", "20", *out, *more])


def test_the_command_warns_of_an_unfamiliar_scan_and_shows_what_the_file_is(
    network, tmp_path, capsys
):
    assert command(tmp_path, "--solver", "supervised", "--prior", str(network)) == 0
    assert "warning: net was trained for 12 views" in capsys.readouterr().err
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["history"][0]["nfe"] == 1
    assert record["prior"]["details"]["preconditioning"] == "direct"
    assert main(["prior", "info", str(network)]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["description"].startswith("Not a denoiser")
    assert info["details"]["preconditioning_kwargs"]["scan"]["views"] == 12


@pytest.mark.parametrize(
    ("solver", "prior", "words"),
    [
        ("dc-pnpdp", "net.safetensors", "use it with --solver supervised"),
        ("supervised", "ct-small", "was trained to denoise"),
        ("supervised", "tv", "was trained to denoise"),
    ],
)
def test_the_wrong_kind_of_prior_is_refused_in_one_sentence(
    network, tmp_path, capsys, solver, prior, words
):
    path = str(network) if prior == network.name else prior
    assert command(tmp_path, "--solver", solver, "--prior", path) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1
    assert not (tmp_path / "x.npy").exists()
