"""Checkpoints with damage: networks of others, our priors, runs and training that were saved."""

import random

import fuzz_files
import pytest
import torch
from fuzz_cases import PART, run_cases
from mutations import mutate, mutate_pickle, mutate_safetensors, mutate_zip

from engine.files.checkpoint import Checkpoint
from engine.priors.importing import open_checkpoint
from engine.priors.importing.checkpoint import read_weights
from engine.priors.safetensors_file import load_prior_file
from engine.priors.training.checkpoint import read_checkpoint
from engine.runs.reopen import Rebuilder


def importing(path):
    def use(rng):
        checkpoint = open_checkpoint(path, {})
        if rng.random() < 0.1:  # the costlier part, and the less exposed one
            read_weights(checkpoint)

    return use


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pickletools")
@pytest.mark.parametrize("start", [0, PART])
def test_pickled_snapshots(room, start, counted):
    path, good = room.target / "x.pkl", fuzz_files.snapshot(room.target)
    seeds = range(start, start + PART)
    counts = run_cases(
        room, seeds, path, good, lambda rng: mutate_pickle(good, rng), importing(path)
    )
    counted("pickled snapshots", counts)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pickletools")
def test_torch_archives(room, counted):
    path, good = room.target / "x.pt", fuzz_files.torch_archive(room.target)
    counts = run_cases(
        room, range(PART), path, good, lambda rng: mutate_zip(good, rng), importing(path)
    )
    counted("torch archives", counts)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pickletools")
def test_training_checkpoints(room, counted):
    state = {"settings": "{}", "step": 3, "denoiser": {"w": torch.ones(3)}, "history": "{}"}
    path = room.target / "checkpoint.pt"
    torch.save(state, path)
    good = path.read_bytes()
    counts = run_cases(
        room,
        range(PART),
        path,
        good,
        lambda rng: mutate_zip(good, rng),
        lambda rng: read_checkpoint(room.target),
    )
    counted("training checkpoints", counts)


def damaged_tensors(good):
    def damage(rng: random.Random):
        return mutate_safetensors(good, rng) if rng.random() < 0.8 else mutate(good, rng)

    return damage


def test_priors(room, counted):
    path = room.target / "x.safetensors"
    good = fuzz_files.prior(room.target)
    counts = run_cases(
        room,
        range(PART),
        path,
        good,
        damaged_tensors(good),
        lambda rng: load_prior_file(path),
    )
    counted("priors", counts)


def test_checkpoints_of_runs(room, counted):
    body = fuzz_files.record(room.target)
    record = room.target / f"{fuzz_files.RUN}.json"
    path = Checkpoint.path_beside(record)
    good = path.read_bytes()
    assert body["status"] == "done"

    def use(rng):
        Checkpoint.read(path)
        if rng.random() < 0.2:
            Rebuilder().rebuild(record)

    counted(
        "checkpoints of runs",
        run_cases(room, range(PART), path, good, damaged_tensors(good), use),
    )
