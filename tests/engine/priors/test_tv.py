"""Total variation as a proximal map."""

import torch
from helpers import relative

from engine.physics.units import IntensityMap
from engine.priors.analytic import TVPrior, divergence, gradient, total_variation, tv_prox


def test_divergence_is_minus_the_adjoint_of_the_gradient():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2, 7, 9, generator=generator, dtype=torch.float64)
    p = torch.randn(2, 2, 2, 7, 9, generator=generator, dtype=torch.float64)
    left, right = (gradient(x) * p).sum(), -(x * divergence(p)).sum()
    torch.testing.assert_close(left, right)


def test_prox_of_a_two_pixel_step_is_known():
    """Two halves a, b of one row: each moves towards the other by weight / (pixels per half)."""
    x = torch.tensor([0.0, 0, 0, 1, 1, 1], dtype=torch.float64).view(1, 1, 1, 6)
    z, _ = tv_prox(x, 0.3, 3000)
    expected = torch.tensor([0.1, 0.1, 0.1, 0.9, 0.9, 0.9], dtype=torch.float64)
    torch.testing.assert_close(z.flatten(), expected, atol=1e-6, rtol=0)


def test_prox_beats_every_neighbour_of_its_objective():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 2, 12, 12, generator=generator, dtype=torch.float64)
    z, _ = tv_prox(x, 0.5, 4000)

    def objective(w):
        return 0.5 * float((w - x).square().sum()) + 0.5 * float(total_variation(w))

    best = objective(z)
    for _ in range(50):
        step = 1e-3 * torch.randn(x.shape, generator=generator, dtype=torch.float64)
        assert objective(z + step) > best


def test_a_flat_image_stays_and_a_zero_weight_changes_nothing():
    flat = torch.full((1, 1, 8, 8), 0.7, dtype=torch.float64)
    assert relative(tv_prox(flat, 2.0, 50)[0], flat) < 1e-12
    noise = torch.randn(1, 1, 8, 8)
    assert torch.equal(tv_prox(noise, 0.0, 50)[0], noise)


def test_the_prior_denoises():
    generator = torch.Generator().manual_seed(0)
    clean = torch.zeros(1, 1, 64, 64)
    clean[..., 20:40, 16:50] = 1
    noisy = clean + 0.2 * torch.randn(clean.shape, generator=generator)
    prior = TVPrior(IntensityMap("hu", 1000.0), 1)
    assert relative(prior(noisy, 0.2), clean) < 0.4 * relative(noisy, clean)
