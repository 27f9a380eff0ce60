"""Supervised training: it learns to correct FBP images of its scan, and says what it is."""

import argparse
import json

import numpy as np
import pytest
import torch
from supervised_files import write_network

from engine.cli import prior_train
from engine.physics.phantoms import ct_phantom
from engine.priors.safetensors_file import load_prior_file
from engine.priors.trained_scan import TrainedScan, trained_scan, unfamiliar
from engine.priors.training.data import Sampler, Source
from engine.priors.training.loop import Trainer
from engine.priors.training.objective import Correction, CorrectionValidation
from engine.priors.training.report import Origin, export
from engine.priors.training.settings import RunSettings, TrainingSettings
from engine.spec.errors import RequestError

TINY = {
    "widths": "16,32",
    "blocks": "1,1",
    "attention": "none",
    "unshuffle": 2,
    "embedding": 8,
    "size": 64,
    "batch": 2,
    "steps": 60,
    "warmup_steps": 2,
    "learning_rate": 3e-3,
    "ema_decay": 0.8,
    "phantom_share": 0.0,
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def slices():
    """Of 32 x 32 pixels, which is enough for streaks."""
    return np.stack([ct_phantom(seed=seed, size=64).image[::2, ::2] for seed in (0, 1)])


def make_trainer(folder, slices, scan=None, **changes):
    settings = TrainingSettings(**{**TINY, "crop": 0, **changes})
    objective = Correction(settings, scan or TrainedScan(views=8))
    sampler = Sampler(settings, [Source("phantoms", slices.astype(np.int16))], None)
    folder.mkdir(exist_ok=True)
    return Trainer(settings, RunSettings(), sampler, 0.5, "data", folder, objective=objective)


def advance(trainer, count):
    steps = trainer.steps()
    return [next(steps).loss for _ in range(count)]


def test_a_few_steps_halve_the_error_of_fbp(tmp_path, slices):
    trainer = make_trainer(tmp_path, slices)
    validation = CorrectionValidation([Source("p", slices)], trainer.objective, 2)
    before = trainer.validate(validation)
    assert before["corrected"] == before["FBP"]  # an untrained network changes nothing
    list(trainer.steps())
    after = trainer.validate(validation)
    assert after["FBP"] == before["FBP"]
    assert after["corrected"] > after["FBP"] + 3
    clean = torch.from_numpy(slices)[:, None] / 1000
    fbp = trainer.objective.fbp(clean, 0)
    with torch.no_grad():
        corrected = trainer.averaged()(fbp, 0.0)
    assert (corrected - clean).square().mean() < 0.5 * (fbp - clean).square().mean()


def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path, slices):
    scan = TrainedScan(views=8, photons=1e4)
    whole = make_trainer(tmp_path / "whole", slices, scan)
    losses = advance(whole, 6)
    first = make_trainer(tmp_path / "parts", slices, scan)
    begun = advance(first, 2)
    first.save()
    second = make_trainer(tmp_path / "parts", slices, scan)
    assert second.resume()
    assert begun + advance(second, 4) == losses
    for name, value in whole.average.values.items():
        assert torch.equal(value, second.average.values[name]), name


def test_another_scan_or_a_denoiser_does_not_go_on_from_a_checkpoint(tmp_path, slices):
    make_trainer(tmp_path, slices).save()
    with pytest.raises(RequestError, match="--views 20 differs from 8"):
        make_trainer(tmp_path, slices, TrainedScan(views=20)).resume()
    settings = TrainingSettings(**{**TINY, "crop": 0})
    sampler = Sampler(settings, [Source("phantoms", slices.astype(np.int16))], None)
    denoiser = Trainer(settings, RunSettings(), sampler, 0.5, "data", tmp_path)
    with pytest.raises(RequestError, match="--supervised False differs from True"):
        denoiser.resume(extend=True)


def test_noise_is_new_in_every_step_and_the_same_for_the_same_step(tmp_path, slices):
    trainer = make_trainer(tmp_path, slices, TrainedScan(views=8, photons=1e3))
    clean = torch.from_numpy(slices[:1]).repeat(2, 1, 1)[:, None] / 1000
    one, again, other = (
        trainer.objective.example(clean, torch.Generator().manual_seed(seed))[1]
        for seed in (1, 1, 2)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert not torch.equal(one[0], one[1])


def test_a_written_network_computes_the_same_bits(tmp_path, slices):
    trainer = make_trainer(tmp_path, slices)
    advance(trainer, 3)
    export(trainer, Origin("net", "d", "t", "l"), tmp_path / "net.safetensors")
    loaded = load_prior_file(tmp_path / "net.safetensors")
    assert trained_scan(loaded.info) == TrainedScan(views=8)
    network = trainer.averaged()
    network.load_state_dict({k: v.half().float() for k, v in network.state_dict().items()})
    fbp = trainer.objective.fbp(torch.from_numpy(slices[:1])[:, None] / 1000, 0)
    with torch.no_grad():
        assert torch.equal(loaded(fbp, 0.0), network(fbp, 0.0))
    assert torch.equal(loaded(fbp, 0.0), loaded(fbp, 0.7))  # no noise level means anything
    card = (tmp_path / "net.md").read_text()
    assert "a denoiser, or ProCT" in card
    assert "| views | 8 |" in card


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"scan": 1}, {"scan": {"views": -1}}, {"scan": {"rays": 3}}, {"scan": {}, "more": 1}],
    ids=str,
)
def test_a_file_with_a_nonsense_scan_is_refused(tmp_path, kwargs):
    path = write_network(tmp_path / "net.safetensors")
    size = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + size])
    header["__metadata__"]["preconditioning_kwargs"] = json.dumps(kwargs)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + path.read_bytes()[8 + size :])
    with pytest.raises(RequestError, match=r"net\.safetensors cannot be used as a prior"):
        load_prior_file(path)


def test_what_is_unfamiliar_is_told_in_one_sentence(tmp_path):
    info = load_prior_file(write_network(tmp_path / "net.safetensors")).info
    assert unfamiliar(info, "image", {}) is None
    assert unfamiliar(info, "image", {"views": 20, "backend": "astra", "weighted": False}) is None
    said = unfamiliar(info, "image", {"views": 40, "photons": 1e4})
    trained = "net was trained for 20 views over 180 degrees, no noise; this scan differs: "
    assert said == f"{trained}views 40 instead of 20, photons 10000 instead of none."
    assert unfamiliar(info, "sinogram", {}).startswith(f"{trained}the data are measured")
    assert "--task" in unfamiliar(info, "image", {"task": "deblur-gaussian"})


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    prior_train.add_options(parser)
    return prior_train.run(parser.parse_args([*arguments]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--views", "20"], "--views needs --supervised"),
        (["--supervised", "--crop", "64"], "--crop must be 0 with --supervised"),
        (["--supervised", "--modality", "mr"], "--supervised is for CT"),
        (["--supervised", "--views", "0"], "--views must be at least 1"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_read(arguments, words):
    with pytest.raises(RequestError, match=words):
        run_command("missing.npy", "-o", "out.safetensors", *arguments)


def test_the_command_writes_a_network_for_its_scan(tmp_path, slices, monkeypatch, capsys):
    monkeypatch.setattr(prior_train, "_StopRequest", lambda: argparse.Namespace(asked=False))
    np.save(tmp_path / "t.npy", slices[:1])
    np.save(tmp_path / "v.npy", slices[1:])
    out = tmp_path / "net.safetensors"
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    files = [str(tmp_path / "t.npy"), "-o", str(out), "--validation", str(tmp_path / "v.npy")]
    try:
        assert run_command(*files, *options, "--supervised", "--views=9", "--steps=3") == 0
    finally:
        torch.set_flush_denormal(False)
    assert "dB (FBP/corrected)" in capsys.readouterr().err
    info = load_prior_file(out).info
    assert trained_scan(info) == TrainedScan(views=9)
    assert info.description.startswith("Not a denoiser")
    assert "| corrected |" in info.details["model_card"]
