"""Training: it learns what is optimal, resumes exactly, and reports what it did."""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engine.cli import prior_train
from engine.priors.analytic import power_law_spectrum
from engine.priors.precondition import EDMPreconditioned
from engine.priors.safetensors_file import load_prior_file
from engine.priors.training.data import Sampler, Source
from engine.priors.training.loop import Progress, Trainer
from engine.priors.training.objective import Validation, WeightAverage, edm_loss, sample_sigma
from engine.priors.training.report import ProgressLine
from engine.priors.training.settings import RunSettings, TrainingSettings
from engine.spec.errors import DualscopeError, RequestError

ROOT = Path(__file__).resolve().parents[3]
TINY = {
    "widths": "32,32",
    "blocks": "1,1",
    "attention": "1",
    "unshuffle": 2,
    "embedding": 16,
    "size": 64,
    "crop": 32,
    "batch": 4,
    "steps": 20,
    "warmup_steps": 2,
    "phantom_share": 0.0,
}


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small lose more time to threads waiting for each other than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def noise_slices(count, size=64, seed=0, low=-500, high=500):
    return np.random.default_rng(seed).integers(low, high, (count, size, size), dtype=np.int16)


def make_trainer(folder, sources=None, run=None, **changes):
    settings = TrainingSettings(**{**TINY, **changes})
    sources = sources or [Source("noise", noise_slices(6))]
    sampler = Sampler(settings, sources, None)
    folder.mkdir(exist_ok=True)
    return Trainer(settings, run or RunSettings(), sampler, 0.3, "data", folder)


def advance(trainer, count):
    steps = trainer.steps()
    return [next(steps).loss for _ in range(count)]


# -- what is learned


def test_a_trained_network_approaches_the_wiener_filter(tmp_path):
    """On stationary Gaussian images the best denoiser is known: no other has a lower error."""
    spectrum = power_law_spectrum(32, 32, variance=0.09, corner=0.08, exponent=4.0)
    generator = torch.Generator().manual_seed(0)
    white = torch.randn(300, 32, 32, generator=generator, dtype=torch.float64)
    coloured = torch.fft.ifft2(torch.fft.fft2(white) * spectrum.sqrt()).real
    slices = (1000 * coloured).round().to(torch.int16).numpy()
    trainer = make_trainer(
        tmp_path,
        [Source("gaussian", slices[:280])],
        **{"attention": "none", "batch": 8, "steps": 250, "learning_rate": 3e-3},
        **{"p_mean": math.log(0.2), "p_std": 0.5, "ema_decay": 0.98},
    )
    list(trainer.steps())
    sigma, clean = 0.2, coloured[280:, None].float()
    noisy = clean + sigma * torch.randn(clean.shape, generator=generator)
    wiener = torch.fft.ifft2(torch.fft.fft2(noisy) * (spectrum / (spectrum + sigma**2))).real
    best = (wiener - clean).square().mean()
    with torch.no_grad():
        reached = (trainer.averaged()(noisy, sigma) - clean).square().mean()
    assert best < 0.3 * sigma**2
    assert 0.95 * best < reached < 1.25 * best


def test_the_loss_is_one_for_a_network_that_knows_nothing():
    """With F = 0 the weight makes the loss the target's variance, which is 1 at every level."""
    clean = 0.5 * torch.randn(64, 1, 16, 16)
    denoiser = EDMPreconditioned(lambda_network(lambda x, c: torch.zeros_like(x)), 0.5)
    for sigma in (0.05, 0.5, 5.0):
        loss = edm_loss(denoiser, clean, torch.full((64,), sigma), torch.randn(clean.shape))
        assert loss.item() == pytest.approx(1.0, abs=0.05)


def lambda_network(function):
    network = torch.nn.Module()
    network.forward = function
    return network


def test_noise_levels_are_log_normal_and_spread_over_each_batch():
    generator = torch.Generator().manual_seed(0)
    levels = torch.cat([sample_sigma(8, -1.2, 1.2, generator) for _ in range(500)]).log()
    assert levels.mean().item() == pytest.approx(-1.2, abs=0.02)
    assert levels.std().item() == pytest.approx(1.2, abs=0.05)
    one = sample_sigma(8, -1.2, 1.2, generator).log()
    assert (one < -1.2).sum() == 4


def test_the_average_forgets_the_first_weights_and_then_is_slow():
    model = torch.nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, 0.99)
    model.weight.data.fill_(1.0)
    average.update(model, 0)
    assert average.values["weight"].item() > 0.5
    model.weight.data.fill_(100.0)
    before = average.values["weight"].item()
    average.update(model, 10**6)
    assert average.values["weight"].item() == pytest.approx(before + 0.01 * (100 - before))


def test_the_learning_rate_rises_and_then_falls_to_nothing():
    settings = TrainingSettings(**{**TINY, "warmup_steps": 10, "learning_rate": 1e-3})
    assert settings.rate(0, 0, 0.0) < 1e-4
    assert settings.rate(1010, 1000, 0.0) == pytest.approx(1e-3)
    assert settings.rate(500, 0, 0.5) == pytest.approx(5e-4)
    assert settings.rate(999, 0, 1.0) == 0


def test_the_rate_can_stay_until_the_last_part_of_the_schedule():
    settings = TrainingSettings(**{**TINY, "decay_share": 0.2, "learning_rate": 1e-3})
    assert settings.rate(500, 0, 0.79) == pytest.approx(1e-3)
    assert settings.rate(500, 0, 0.9) == pytest.approx(5e-4)
    assert settings.rate(500, 0, 1.0) == 0


def test_the_fast_training_path_has_the_loss_curve_of_the_plain_one(tmp_path):
    """In evaluation mode the network is made of separate operations."""
    fast, plain = make_trainer(tmp_path / "fast"), make_trainer(tmp_path / "plain")
    plain.denoiser.eval()
    assert advance(fast, 12) == pytest.approx(advance(plain, 12), rel=1e-3)


# -- resuming


def test_a_resumed_training_equals_an_uninterrupted_one_bit_for_bit(tmp_path):
    whole = make_trainer(tmp_path / "whole")
    losses = advance(whole, 12)
    first = make_trainer(tmp_path / "parts")
    begun = advance(first, 5)
    first.save()
    second = make_trainer(tmp_path / "parts")
    assert second.resume()
    assert begun + advance(second, 7) == losses
    for name, value in whole.denoiser.state_dict().items():
        assert torch.equal(value, second.denoiser.state_dict()[name]), name
        assert torch.equal(whole.average.values[name], second.average.values[name]), name
    assert second.history == whole.history


def test_resuming_with_other_settings_or_data_is_refused(tmp_path):
    first = make_trainer(tmp_path)
    advance(first, 1)
    first.save()
    with pytest.raises(RequestError, match="--learning-rate"):
        make_trainer(tmp_path, learning_rate=1e-3).resume()
    other = make_trainer(tmp_path)
    other.data_sha256 = "other"
    with pytest.raises(RequestError, match="data differ"):
        other.resume()


def test_a_run_can_be_extended_but_not_to_another_network(tmp_path):
    first = make_trainer(tmp_path)
    list(first.steps())
    first.save()
    longer = make_trainer(tmp_path, steps=25, learning_rate=1e-4)
    longer.resume(extend=True)
    assert longer.fraction() == 0
    assert len(list(longer.steps())) == 5
    with pytest.raises(RequestError, match="--widths"):
        make_trainer(tmp_path, widths="32,64").resume(extend=True)


def test_an_extended_run_keeps_the_scale_its_weights_were_trained_for(tmp_path):
    first = make_trainer(tmp_path)
    advance(first, 1)
    first.denoiser.sigma_data = 0.25
    first.save()
    other = make_trainer(tmp_path, learning_rate=1e-4)
    other.resume(extend=True)
    assert other.denoiser.sigma_data == other.averaged().sigma_data == 0.25


@pytest.mark.parametrize("content", [b"", b"cos\nsystem\n(S'true'\ntR.", b"PK\x03\x04 no zip"])
def test_a_broken_or_hostile_checkpoint_is_refused(tmp_path, content):
    (tmp_path / "checkpoint.pt").write_bytes(content)
    with pytest.raises(RequestError, match="not a training checkpoint"):
        make_trainer(tmp_path).resume()


def test_a_time_limit_ends_the_run_with_the_rate_decayed(tmp_path):
    trainer = make_trainer(tmp_path, run=RunSettings(hours=2 / 3600), steps=10**6)
    last = list(trainer.steps())[-1]
    assert last.fraction >= 1
    assert last.rate < 0.1 * trainer.settings.learning_rate


def test_divergence_is_reported_and_the_checkpoint_kept(tmp_path):
    trainer = make_trainer(tmp_path)
    trainer.save()
    before = (tmp_path / "checkpoint.pt").read_bytes()
    trainer.denoiser.model.head.bias.data.fill_(float("nan"))
    with pytest.raises(DualscopeError, match="diverged at step 0"):
        next(trainer.steps())
    assert (tmp_path / "checkpoint.pt").read_bytes() == before


# -- reports


def test_validation_uses_the_same_noise_every_time_and_knows_the_identity():
    """Doing nothing at sigma leaves an error of sigma: the PSNR is known in advance."""
    validation = Validation([Source("v", noise_slices(9, low=-300, high=300))], "ct", 3)
    identity = EDMPreconditioned(torch.nn.Linear(1, 1), 0.5)
    identity.denoise = lambda x, sigma: x
    first = validation.psnr(identity)
    assert len(validation.images) == 3
    assert first == validation.psnr(identity)
    assert first["0.1"] == pytest.approx(20 * math.log10(1.6 / 0.1), abs=0.1)


def test_the_progress_line_tells_speed_time_and_validation():
    stream = StringIO()
    line = ProgressLine(stream)
    line.update(Progress(10, 100, 0.5, 1e-3, 5.0, 0.1), None)
    line.shown = -math.inf
    line.update(Progress(20, 100, 0.4, 1e-3, 10.0, 0.2), {"0.1": 35.21, "2": 20.0})
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("step 20/100  loss 0.49")
    assert "it/s" in last
    assert "left" in last
    assert last.endswith("val 35.21 dB at sigma 0.1")


def command(tmp_path, *more):
    np.savez(tmp_path / "t.npz", a=noise_slices(4), b=noise_slices(4, seed=1))
    np.savez(tmp_path / "v.npz", c=noise_slices(4, seed=2))
    options = [f"--{k.replace('_', '-')}={v}" for k, v in TINY.items()]
    files = [tmp_path / "t.npz", "-o", tmp_path / "out.safetensors"]
    return [*map(str, files), "--validation", str(tmp_path / "v.npz"), *options, *more]


def run_command(arguments):
    parser = argparse.ArgumentParser()
    prior_train.add_options(parser)
    threads, handlers = torch.get_num_threads(), (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in handlers]
    try:
        return prior_train.run(parser.parse_args(arguments))
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
        for number, handler in zip(handlers, before, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("modality", ["ct", "mr"])
def test_the_command_writes_a_prior_a_card_and_a_plot(tmp_path, modality):
    more = ["--modality", modality, "--phantom-share=0.2", "--phantom-count=2", "--licence=CC0"]
    assert run_command(command(tmp_path, *more, "--validate-steps=10", "--steps=12")) == 0
    prior = load_prior_file(tmp_path / "out.safetensors")
    assert prior.info.channels == (1 if modality == "ct" else 2)
    assert prior.info.licence == "CC0"
    assert prior.info.intensity.kind == ("hu" if modality == "ct" else "mr")
    assert prior(torch.zeros(1, prior.info.channels, 50, 50), 0.5).shape[-1] == 50
    card = (tmp_path / "out.md").read_text()
    assert "| 0.1 |" in card
    assert prior.info.details["familiarity"]["slices"] == 4
    assert "| Familiar images | measured on 4 slices of 1 sources" in card
    assert "after step 12" in card
    with Image.open(tmp_path / "out.png") as plot:
        assert plot.size == (900, 480)


def test_the_state_before_the_rate_falls_is_kept_to_continue_from(tmp_path):
    arguments = command(tmp_path, "--decay-share=0.5")
    assert run_command(arguments) == 0
    folder = tmp_path / "out.training"
    kept = torch.load(folder / "before-decay.pt", weights_only=True)
    assert kept["step"] == 11  # the first step whose successor has a lower rate
    (folder / "before-decay.pt").replace(folder / "checkpoint.pt")
    assert run_command([*arguments, "--extend", "--steps=24"]) == 0
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["step"] == 24


def test_the_command_refuses_validation_data_in_training(tmp_path):
    arguments = command(tmp_path)
    with pytest.raises(RequestError, match="kept apart"):
        run_command([*arguments, "--validation", str(tmp_path / "t.npz")])


def test_a_termination_signal_saves_and_the_next_run_resumes(tmp_path):
    arguments = command(tmp_path, "--steps=300", "--threads=1")
    call = [sys.executable, "-m", "engine.cli", "prior", "train", *arguments]
    process = subprocess.Popen(call, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline().startswith("step 1/")
    os.kill(process.pid, signal.SIGTERM)
    message = process.communicate(timeout=300)[1]
    assert process.returncode == 130
    assert "run again to resume" in message
    state = torch.load(tmp_path / "out.training" / "checkpoint.pt", weights_only=True)
    assert 1 <= state["step"] < 300
    assert json.loads(state["settings"])["batch"] == 4
    assert run_command([*arguments, "--export-now"]) == 0
    assert load_prior_file(tmp_path / "out.safetensors").info.name == "out"
