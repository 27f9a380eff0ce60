"""What scanners add is drawn where it belongs, within the range of the data, and repeatably."""

import numpy as np
import pytest
import torch

from engine.priors.training import augment as scanner
from engine.priors.training.augment import local_field, other_contrast, warp
from engine.priors.training.data import Sampler, Source
from engine.priors.training.settings import TrainingSettings
from engine.spec.errors import RequestError

SEEDS = range(12)
AIR = torch.full((96, 96), -1.0)


def body(radius=22):
    rows, columns = torch.meshgrid(torch.arange(96), torch.arange(96), indexing="ij")
    inside = (rows - 48) ** 2 + (columns - 48) ** 2 < radius**2
    return torch.where(inside, 0.05, -1.0)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("change", [scanner.add_table, scanner.add_arms])
def test_tables_and_arms_leave_the_body_alone_and_fill_air(change):
    image, changed = body(), 0
    for seed in SEEDS:
        out = change(image, rng(seed))
        assert torch.equal(out[image > -0.6], image[image > -0.6])
        assert out.min() >= -1.1
        assert out.max() <= 2
        changed += int(not torch.equal(out, image))
    assert changed > len(SEEDS) / 2


def test_a_table_is_below_the_body_in_every_column():
    image = body()
    for seed in SEEDS:
        rows = torch.arange(96)[:, None].expand(96, 96)
        new = (scanner.add_table(image, rng(seed)) - image).abs() > 1e-6
        last = torch.where(image > -0.4, rows, -1).amax(0)
        assert (rows[new] > last.expand(96, 96)[new]).all()


@pytest.mark.parametrize("change", [scanner.add_implants, scanner.add_contrast])
def test_implants_and_contrast_make_the_body_brighter_and_nothing_else(change):
    image = body()
    outs = [change(image, rng(seed)) for seed in SEEDS]
    assert all((out >= image - 1e-6).all() and out.max() <= 3 for out in outs)
    assert any(out.max() > image.max() + 0.01 for out in outs)


def test_a_round_field_of_view_leaves_air_in_the_corners_and_the_centre_as_it_was():
    image = torch.zeros(96, 96)
    for seed in SEEDS:
        out = scanner.truncate(image, rng(seed))
        assert out[0, 0] == out[-1, -1] == -1
        assert torch.equal(out[40:56, 40:56], image[40:56, 40:56])


@pytest.mark.parametrize(
    "change", [scanner.add_table, scanner.add_arms, scanner.add_implants, scanner.truncate]
)
def test_an_image_without_a_body_is_no_obstacle(change):
    assert change(AIR, rng()).isfinite().all()


def test_grain_has_at_most_the_deviation_asked_for_and_none_is_nothing():
    x = torch.zeros(1, 96, 96)
    assert torch.equal(scanner.add_grain(x, 0.0, rng()), x)
    deviations = [float(scanner.add_grain(x, 0.01, rng(seed)).std()) for seed in SEEDS]
    assert max(deviations) <= 0.0101
    assert min(deviations) < 0.005


def test_another_contrast_keeps_the_background_and_the_scale():
    x = torch.rand(1, 64, 64)
    x[:, :16] = 0
    for seed in SEEDS:
        out = other_contrast(x, rng(seed))
        assert out.dtype == torch.float32
        assert not out[:, :16].any()
        assert (out >= 0).all()
        assert 0.4 < out.max() < 2.5


def test_a_local_field_turns_and_does_not_scale():
    turn = local_field(48, 64, rng())
    torch.testing.assert_close(turn.square().sum(0), torch.ones(48, 64))


def test_a_zoomed_out_image_is_surrounded_by_what_was_asked_for():
    x = torch.zeros(1, 64, 64)
    outs = [warp(x, 0, 0.5, rng(seed), outside=-1.0) for seed in SEEDS]
    assert max(float(out[0, 32, 32].abs()) for out in outs) < 1e-5
    assert -1.0 in {float(out[0, 0, 0]) for out in outs}


# -- in the sampler


def settings(**changes):
    small = {"size": 64, "crop": 0, "batch": 4, "phantom_share": 0.0}
    return TrainingSettings(**{**small, **changes})


def sources(modality="ct"):
    low, high = (-1000, 1000) if modality == "ct" else (0, 1000)
    images = rng().integers(low, high, (2, 4, 64, 64), dtype=np.int16)
    return [Source("files/one", images[0]), Source("files/two_T2", images[1])]


@pytest.mark.parametrize("modality", ["ct", "mr"])
def test_changed_batches_depend_on_seed_and_step_only(modality):
    every = {"scanner_share": 1.0, "warp_share": 1.0, "turn_share": 0.5, "grain_hu": 5.0}
    samplers = [Sampler(settings(modality=modality, **every), sources(modality), None)] * 2
    samplers[0].batch(1)
    one, two = (sampler.batch(5)[0] for sampler in samplers)
    assert torch.equal(one, two)
    assert one.isfinite().all()
    assert one.shape == (4, 1 if modality == "ct" else 2, 64, 64)


def test_sources_are_drawn_as_weighted():
    black, white = np.zeros((3, 64, 64), np.int16), np.full((3, 64, 64), 1000, np.int16)
    weighted = settings(source_weights="*T2=3")
    sampler = Sampler(weighted, [Source("a/T1", black), Source("a/T2", white)], None)
    mean = torch.stack([sampler.batch(step)[0] for step in range(100)]).mean().item()
    assert mean == pytest.approx(0.75, abs=0.08)


@pytest.mark.parametrize("text", ["one", "one=", "=2", "one=x", "one=-1", "one=nan", "one=inf"])
def test_wrong_weights_are_refused(text):
    with pytest.raises(RequestError, match="--source-weights"):
        settings(source_weights=text)


@pytest.mark.parametrize("text", ["three=2", "*=0"])
def test_weights_that_fit_no_source_or_leave_none_are_refused(text):
    with pytest.raises(RequestError, match="--source-weights"):
        Sampler(settings(source_weights=text), sources(), None)
