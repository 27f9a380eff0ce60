"""Training data: read and checked, sampled evenly and repeatably, validation kept apart."""

import numpy as np
import pytest
import torch

from engine.priors.training.augment import random_phase, warp
from engine.priors.training.data import (
    Sampler,
    Source,
    check_apart,
    fit_sigma_data,
    phantom_pool,
    read_sources,
)
from engine.priors.training.settings import TrainingSettings
from engine.spec.errors import RequestError

TINY = {"size": 64, "crop": 32, "batch": 4, "phantom_share": 0.0}


def noise_slices(count, size=64, seed=0, low=-500, high=500):
    return np.random.default_rng(seed).integers(low, high, (count, size, size), dtype=np.int16)


def test_batches_depend_on_seed_and_step_only():
    sources = [Source("a", noise_slices(5)), Source("b", noise_slices(5, seed=1))]
    settings = TrainingSettings(**{**TINY, "warp_share": 0.5})
    one, two = Sampler(settings, sources, None), Sampler(settings, sources, None)
    one.batch(3)
    assert torch.equal(one.batch(7)[0], two.batch(7)[0])
    assert not torch.equal(one.batch(7)[0], one.batch(8)[0])


def test_sources_are_sampled_evenly_whatever_their_length():
    many = np.zeros((500, 64, 64), np.int16)
    few = np.full((5, 64, 64), 1000, np.int16)
    sampler = Sampler(TrainingSettings(**TINY), [Source("m", many), Source("f", few)], None)
    mean = torch.stack([sampler.batch(step)[0] for step in range(100)]).mean().item()
    assert mean == pytest.approx(0.5, abs=0.1)


def test_phantoms_have_their_share():
    real = Source("real", np.zeros((5, 64, 64), np.int16))
    phantoms = Source("phantom:ct", np.full((5, 64, 64), 1000, np.int16))
    settings = TrainingSettings(**{**TINY, "phantom_share": 0.25})
    sampler = Sampler(settings, [real], phantoms)
    mean = torch.stack([sampler.batch(step)[0] for step in range(100)]).mean().item()
    assert mean == pytest.approx(0.25, abs=0.1)
    assert Sampler(settings, [], phantoms).batch(0)[0].mean() == 1


def test_ct_keeps_hounsfield_units_and_limits_metal(tmp_path):
    np.save(
        tmp_path / "ct.npy",
        np.array([-2000, -1000, 40, 2900, 9000]).repeat(4096).reshape(5, 64, 64),
    )
    (source,) = read_sources([str(tmp_path)], "ct")
    assert sorted(np.unique(source.slices)) == [-1000, 40, 2900, 3000]
    x = Sampler(TrainingSettings(**TINY), [source], None).batch(0)[0]
    assert set(x.unique().tolist()) <= {np.float32(v).item() for v in (-1, 0.04, 2.9, 3)}


def test_mr_becomes_complex_with_smooth_phase_and_whole_images():
    source = Source("mr", noise_slices(3, low=0, high=1500))
    settings = TrainingSettings(**{**TINY, "modality": "mr", "crop": 0, "flip": False})
    x = Sampler(settings, [source], None).batch(0)[0]
    assert x.shape == (4, 2, 64, 64)
    magnitude = (1000 * x.square().sum(1).sqrt()).round().to(torch.int16).numpy()
    assert all((source.slices == m).all((1, 2)).any() for m in magnitude)
    assert fit_sigma_data([source], "mr") == pytest.approx(float(x.std()), rel=0.15)


def test_phase_is_smooth_and_of_unit_magnitude():
    phase = random_phase(64, 48, np.random.default_rng(0))
    assert phase.shape == (2, 64, 48)
    assert torch.allclose(phase.square().sum(0), torch.ones(64, 48), atol=1e-5)
    assert phase.diff(dim=1).abs().max() < 0.5


def test_a_warp_keeps_the_range_and_no_warp_is_the_identity():
    x = torch.rand(1, 64, 64)
    rng = np.random.default_rng(0)
    moved = warp(x, 10, 0.1, rng)
    assert moved.min() >= x.min()
    assert moved.max() <= x.max()
    assert not torch.allclose(moved, x, atol=0.1)
    assert torch.allclose(warp(x, 0, 0, rng), x, atol=1e-4)


def test_phantoms_are_drawn_once(tmp_path):
    first = phantom_pool("ct", 2, 64, tmp_path, 0)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    again = phantom_pool("ct", 2, 64, tmp_path, 0)
    assert np.array_equal(first.slices, again.slices)
    assert file.stat().st_mtime_ns == written
    assert phantom_pool("mr", 1, 64, tmp_path, 0).slices.max() > 500


def test_slices_in_training_and_validation_at_once_are_refused():
    train, val = noise_slices(6), noise_slices(6, seed=1)
    blank = np.zeros((1, 64, 64), np.int16)
    check_apart(
        [Source("t", np.concatenate([train, blank]))], [Source("v", val), Source("b", blank)]
    )
    with pytest.raises(RequestError, match="kept apart"):
        check_apart([Source("t", train)], [Source("v", np.concatenate([val, train[3:4]]))])


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 4)),
        np.zeros((0, 4, 4)),
        np.full((1, 4, 4), np.nan),
        np.zeros((1, 4, 4), complex),
        np.array([[[object()]]], dtype=object),
    ],
)
def test_wrong_arrays_are_refused_by_name(tmp_path, array):
    np.savez(tmp_path / "bad.npz", patient=array)
    with pytest.raises(RequestError, match=r"bad\.npz"):
        read_sources([str(tmp_path / "bad.npz")], "ct")


def test_files_that_are_no_arrays_are_refused(tmp_path):
    (tmp_path / "text.npy").write_bytes(b"hello")
    (tmp_path / "empty").mkdir()
    for name in ("text.npy", "empty", "absent.npz"):
        with pytest.raises(RequestError, match=name):
            read_sources([str(tmp_path / name)], "ct")


def test_a_crop_larger_than_the_slices_is_refused():
    with pytest.raises(RequestError, match="--crop 128"):
        Sampler(TrainingSettings(crop=128), [Source("a", noise_slices(2))], None)


def test_shifts_are_on_the_torus_and_within_their_limit():
    one = np.zeros((1, 64, 64), np.int16)
    one[0, 32, 32] = 1000
    settings = TrainingSettings(**{**TINY, "crop": 0, "flip": False, "shift": 3})
    sampler = Sampler(settings, [Source("one", one)], None)
    places = torch.cat([sampler.batch(step)[0] for step in range(50)]).nonzero()
    assert len(places) == 200
    assert set(places[:, 2].tolist()) == set(places[:, 3].tolist()) == set(range(29, 36))
