"""Preconditioning and the prior around it."""

import math

import pytest
import torch
from torch import nn

from engine.physics.units import IntensityMap
from engine.priors.network_prior import NetworkPrior
from engine.priors.networks.compact import CompactUNet
from engine.priors.precondition import EDMPreconditioned, precondition
from engine.priors.prior import PriorInfo
from engine.spec.errors import RequestError


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small lose more time to threads waiting for each other than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Recorder(nn.Module):
    """Returns a fixed answer and keeps what it was asked."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.dummy = nn.Parameter(torch.zeros(1))

    def forward(self, x, c_noise):
        self.x, self.c_noise = x, c_noise
        return self.answer.expand_as(x) + 0 * self.dummy


def make_info(channels=1):
    return PriorInfo(
        name="test",
        channels=channels,
        intensity=IntensityMap("hu", 1000.0),
        native_size=32,
        sigma_min=0.01,
        sigma_max=10.0,
        training_data="none",
        licence="none",
        sha256="0" * 64,
    )


def make_prior(**options):
    torch.manual_seed(0)
    network = CompactUNet(1, (32, 64), (1, 1), (1,), unshuffle=2, embedding=16)
    for parameter in network.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.1)
    return NetworkPrior(EDMPreconditioned(network), make_info(), **options)


@pytest.mark.parametrize("sigma", [0.002, 0.3, 2.0, 80.0])
@pytest.mark.parametrize("sd", [0.3, 0.5])
def test_edm_equals_the_formulas(sigma, sd):
    x, answer = torch.randn(2, 1, 4, 4), torch.randn(2, 1, 4, 4)
    network = Recorder(answer)
    out = EDMPreconditioned(network, sd)(x, sigma)
    total = sigma**2 + sd**2
    expected = sd**2 / total * x + sigma * sd / math.sqrt(total) * answer
    assert torch.allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert torch.allclose(network.x, x / math.sqrt(total), rtol=1e-5)
    assert torch.allclose(network.c_noise, torch.full((2,), math.log(sigma) / 4))


def test_every_sample_has_its_own_level():
    x, levels = torch.randn(3, 1, 4, 4), torch.tensor([0.1, 0.5, 2.0])
    denoiser = EDMPreconditioned(Recorder(torch.ones(())))
    alone = [denoiser(x[i : i + 1], float(levels[i])) for i in range(3)]
    assert torch.allclose(denoiser(x, levels), torch.cat(alone))


def test_without_noise_the_denoiser_is_the_identity():
    prior = make_prior()
    x = torch.randn(1, 1, 32, 32)
    distances = [float((prior.denoiser(x, s) - x).abs().max()) for s in (1e-2, 1e-4, 1e-6)]
    assert distances[2] < 1e-4
    assert distances == sorted(distances, reverse=True)


def test_unknown_preconditioning_is_refused():
    with pytest.raises(RequestError, match="not known"):
        precondition("magic", nn.Identity(), 0.5)


def test_levels_outside_of_the_trained_range_take_the_nearest():
    prior, x = make_prior(), torch.randn(1, 1, 32, 32)
    assert torch.equal(prior(x, 0.0), prior(x, prior.info.sigma_min))
    assert torch.equal(prior(x, 1e9), prior(x, prior.info.sigma_max))


def test_a_slice_does_not_depend_on_its_batch():
    prior, x = make_prior(), torch.randn(5, 1, 32, 32)
    assert torch.equal(prior(x, 0.3)[2:3], prior(x[2:3], 0.3))
    batched = make_prior(slices_at_once=4)
    assert torch.allclose(prior(x, 0.3), batched(x, 0.3), atol=1e-5)


def test_the_result_is_an_ordinary_tensor_of_the_input_type():
    prior, x = make_prior(), torch.randn(1, 1, 32, 32, dtype=torch.float64)
    out = prior(x, 0.3)
    assert out.dtype == x.dtype
    assert not out.is_inference()
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    (out * weight).sum().backward()


def test_gradients_flow_when_the_input_asks_for_them():
    prior, x = make_prior(), torch.randn(1, 1, 32, 32, requires_grad=True)
    prior(x, 0.3).sum().backward()
    assert x.grad.abs().max() > 0
    assert all(p.grad is None for p in prior.denoiser.parameters())


def test_bf16_stays_close():
    """Switched on only where the CPU has it; elsewhere this compares float32 with itself."""
    x = torch.randn(1, 1, 32, 32)
    exact, quick = make_prior()(x, 0.3), make_prior(bf16=True)(x, 0.3)
    assert (exact - quick).square().mean() < 1e-3 * exact.square().mean()
