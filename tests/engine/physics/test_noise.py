"""Noise has the statistics it claims, repeats with its seed, and never breaks a number."""

from __future__ import annotations

import math

import pytest
import torch

from engine.physics.masks import build_mask
from engine.physics.noise import (
    MIN_COUNT,
    complex_gaussian,
    gaussian,
    poisson_line_integrals,
)
from engine.spec.errors import RequestError

N = 40_000


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("electronic_sd", [0.0, 12.0])
@pytest.mark.parametrize("line_integral", [0.0, 2.0, 4.0])
def test_poisson_mean_and_variance_match_theory(line_integral, electronic_sd):
    photons = 1e5
    y = torch.full((1, 1, 1, N), line_integral, dtype=torch.float64)
    noisy = poisson_line_integrals(y, photons, electronic_sd, seeded())
    counts = photons * torch.exp(-noisy.line_integrals)
    mean = photons * math.exp(-line_integral)
    variance = mean + electronic_sd**2
    # Five standard errors of the sample mean and of the sample variance.
    assert abs(counts.mean() - mean) < 5 * math.sqrt(variance / N)
    assert abs(counts.var() / variance - 1) < 5 * math.sqrt(2 / N)
    log_variance = variance / mean**2
    assert abs(noisy.line_integrals.var() / log_variance - 1) < 5 * math.sqrt(2 / N) + 2 / mean
    assert noisy.starved == 0


@pytest.mark.parametrize("electronic_sd", [0.0, 8.0])
def test_weights_are_the_inverse_variance_with_mean_one(electronic_sd):
    levels = torch.linspace(0, 4, 9, dtype=torch.float64)
    y = levels[:, None, None, None].expand(9, 1, 1, N)
    noisy = poisson_line_integrals(y, 2e5, electronic_sd, seeded())
    assert noisy.weights.mean() == pytest.approx(1.0)
    # W / sigma^2 is 1 / var of each ray, so var * W / sigma^2 = 1 at every level.
    variance = noisy.line_integrals.flatten(1).var(dim=1)
    weight = noisy.weights.flatten(1).mean(dim=1)
    ratio = variance * weight / noisy.sigma**2
    torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=5 * math.sqrt(2 / N), atol=0)


def test_weights_follow_the_measured_counts_exactly():
    y = torch.linspace(0, 6, 500, dtype=torch.float64).reshape(1, 1, 5, 100)
    noisy = poisson_line_integrals(y, 1e4, 5.0, seeded())
    counts = 1e4 * torch.exp(-noisy.line_integrals)
    inverse_variance = counts**2 / (counts + 25)
    torch.testing.assert_close(noisy.weights / noisy.sigma**2, inverse_variance)


@pytest.mark.parametrize("electronic_sd", [0.0, 50.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_starvation_is_counted_and_never_gives_inf_or_nan(electronic_sd, dtype):
    y = torch.tensor([0.0, 10.0, 40.0, 800.0, 1e6], dtype=dtype).repeat(1, 1, 20, 1)
    noisy = poisson_line_integrals(y, 100.0, electronic_sd, seeded())
    assert torch.isfinite(noisy.line_integrals).all()
    assert torch.isfinite(noisy.weights).all()
    assert (noisy.weights > 0).all()
    assert math.isfinite(noisy.sigma)
    assert noisy.line_integrals.max() <= math.log(100.0 / MIN_COUNT) + 1e-5
    assert noisy.starved > 20
    if electronic_sd == 0:
        # Line integrals of 10 to 1e6 at 100 photons: e^-10 * 100 is half a percent of a photon.
        assert 75 <= noisy.starved <= 80


def test_a_strong_beam_gives_back_the_clean_line_integrals():
    y = torch.rand(2, 1, 30, 40, generator=seeded(), dtype=torch.float64) * 5
    noisy = poisson_line_integrals(y, 1e15, 0.0, seeded())
    torch.testing.assert_close(noisy.line_integrals, y, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda y, g: poisson_line_integrals(y, 1e4, 3.0, g).line_integrals,
        lambda y, g: gaussian(y, 0.1, g),
        lambda y, g: complex_gaussian(y, 0.1, g),
    ],
)
def test_the_same_seed_gives_the_same_noise_and_leaves_the_global_state_alone(make):
    y = torch.rand(2, 2, 8, 9, generator=seeded(9))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = make(y, seeded(1)), make(y, seeded(1)), make(y, seeded(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
    assert first.dtype == y.dtype
    assert first.shape == y.shape


def test_gaussian_has_the_stated_sd_on_every_ray():
    y = torch.zeros(1, 1, 1, N, dtype=torch.float64)
    noisy = gaussian(y, 0.02, seeded())
    assert abs(noisy.std() / 0.02 - 1) < 5 / math.sqrt(2 * N)
    assert torch.equal(gaussian(y, 0.0), y)


def test_complex_noise_has_the_stated_sd_in_each_part_and_independent_parts():
    y = torch.zeros(1, 2, 200, 200, dtype=torch.float64)
    noise = complex_gaussian(y, 0.3, seeded())[0].flatten(1)
    assert (noise.std(dim=1) / 0.3 - 1).abs().max() < 5 / math.sqrt(2 * N)
    assert torch.corrcoef(noise)[0, 1].abs() < 5 / math.sqrt(N)


def test_complex_noise_touches_only_sampled_lines_and_does_not_depend_on_the_mask():
    y = torch.rand(1, 4, 16, 32, generator=seeded(3))
    mask = build_mask("fastmri", 32, 4)
    everywhere = complex_gaussian(y, 0.3, seeded())
    masked = complex_gaussian(y, 0.3, seeded(), mask)
    sampled = mask.to_tensor().expand_as(y)
    assert torch.equal(masked[~sampled], y[~sampled])
    assert torch.equal(masked[sampled], everywhere[sampled])
    assert torch.equal(complex_gaussian(y, 0.3, seeded(), mask.to_tensor()), masked)


Y = torch.zeros(1, 1, 2, 3)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda: poisson_line_integrals(Y, 0), "photons"),
        (lambda: poisson_line_integrals(Y, -1e5), "photons"),
        (lambda: poisson_line_integrals(Y, float("inf")), "photons"),
        (lambda: poisson_line_integrals(Y, 1e5, -1), "electronic"),
        (lambda: poisson_line_integrals(Y - 100, 1e5), "too large"),
        (lambda: poisson_line_integrals(Y + float("nan"), 1e5), "NaN"),
        (lambda: gaussian(Y, -0.1), "negative"),
        (lambda: gaussian(Y, float("nan")), "negative"),
        (lambda: gaussian(Y[:0], 0.1), "empty"),
        (lambda: complex_gaussian(Y, 0.1), "even number"),
        (lambda: complex_gaussian(Y, -0.1), "negative"),
    ],
)
def test_impossible_noise_is_refused(bad, says):
    with pytest.raises(RequestError, match=says):
        bad()
