"""The spread: the sample SD, whatever the order, and a stated rule for when it has settled."""

import numpy as np
import pytest
from gaussian_modes import SD

from engine.workflows.trust.split import LEAST_SEEDS, Spread


def spread_of(samples):
    spread = Spread()
    for sample in samples:
        spread.add(sample)
    return spread


def test_mean_and_sd_are_those_of_numpy_even_far_from_zero():
    samples = 1e6 + np.random.default_rng(0).normal(size=(7, 2, 5, 4))
    spread = spread_of(samples)
    assert np.allclose(spread.mean, samples.mean(0), rtol=1e-14)
    assert np.allclose(spread.sd, samples.std(0, ddof=1), rtol=1e-8)
    assert (spread.count, len(spread.changes)) == (7, 5)


def test_one_image_has_no_spread():
    spread = spread_of(np.ones((1, 1, 2, 2)))
    assert spread.sd is None
    assert spread.own_error is None
    assert not spread.settled(1e9)


def test_samples_of_a_gaussian_posterior_have_its_sd_within_the_stated_error():
    rng, noise = np.random.default_rng(1), 0.3
    a = rng.normal(size=(20, 30)) / 5
    covariance = np.linalg.inv(a.T @ a / noise**2 + np.eye(30) / SD**2)
    spread = spread_of(rng.multivariate_normal(np.zeros(30), covariance, size=400))
    error = spread.sd / np.sqrt(np.diag(covariance)) - 1
    assert np.sqrt(np.mean(error**2)) == pytest.approx(spread.own_error, rel=0.5)
    assert np.abs(error).max() < 4 * spread.own_error


def test_it_settles_when_two_seeds_in_a_row_change_little():
    rng, spread, settled_at = np.random.default_rng(2), Spread(), None
    while settled_at is None and spread.count < 50:
        spread.add(rng.normal(size=(1, 40, 40)))
        settled_at = spread.count if spread.settled() else None
    assert settled_at is not None
    assert LEAST_SEEDS < settled_at < 15
    assert not spread.settled(below=1e-6)
    assert spread.settled(below=1.0)
