"""VP, VE, iDDPM and numbered steps: each against its formula in plain numbers."""

import math

import pytest
import torch
from torch import nn

from engine.priors.discrete_schedule import linear_schedule, sigmas
from engine.priors.precondition import iddpm_levels, precondition
from engine.spec.errors import RequestError


class Recorder(nn.Module):
    """Returns a fixed answer and keeps what it was asked."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, x, c_noise):
        self.x, self.c_noise = x, c_noise
        return self.answer


def ask(name, sigma, kwargs=None, outputs=1):
    torch.manual_seed(0)
    x, answer = torch.randn(1, 1, 4, 4), torch.randn(1, outputs, 4, 4)
    network = Recorder(answer)
    out = precondition(name, network, 0.5, kwargs)(x, sigma)
    return x, answer[:, :1], network, out


@pytest.mark.parametrize("sigma", [0.002, 0.1, 1.0, 20.0, 150.0])
def test_vp(sigma):
    x, f, network, out = ask("vp", sigma)
    assert torch.allclose(out, x - sigma * f, rtol=1e-5, atol=1e-5)
    assert torch.allclose(network.x, x / math.sqrt(1 + sigma**2), rtol=1e-5)
    # the time found must lead back to sigma by the defining formula
    t = float(network.c_noise) / 999
    assert math.sqrt(math.expm1(19.9 / 2 * t**2 + 0.1 * t)) == pytest.approx(sigma, rel=1e-3)


@pytest.mark.parametrize("sigma", [0.02, 0.5, 100.0])
def test_ve(sigma):
    x, f, network, out = ask("ve", sigma)
    assert torch.allclose(out, x + sigma * f, rtol=1e-5, atol=1e-5)
    assert torch.equal(network.x, x)
    assert float(network.c_noise) == pytest.approx(math.log(sigma / 2), rel=1e-5)


@pytest.mark.parametrize("sigma", [0.01, 0.5, 3.0, 150.0])
def test_iddpm(sigma):
    x, f, network, out = ask("iddpm", sigma, outputs=2)
    assert torch.allclose(out, x - sigma * f, rtol=1e-5, atol=1e-5)
    assert torch.allclose(network.x, x / math.sqrt(1 + sigma**2), rtol=1e-5)
    levels = iddpm_levels().tolist()
    nearest = min(range(1001), key=lambda j: abs(levels[j] - sigma))
    assert float(network.c_noise) == 999 - nearest


def test_iddpm_levels_follow_the_cosine_schedule_until_the_cap():
    levels = iddpm_levels()
    abar = torch.sin(0.5 * math.pi * torch.arange(1001, dtype=torch.float64) / 1000 / 1.008) ** 2
    # u_j^2 + 1 = abar_1000 / abar_j wherever no ratio was capped
    assert torch.allclose(levels[1:] ** 2 + 1, abar[-1] / abar[1:], rtol=1e-9)
    assert levels[0] ** 2 + 1 == pytest.approx(float((levels[1] ** 2 + 1) / 0.001))
    assert bool((levels.diff() < 0).all())
    assert levels[-1] == 0


def test_edm_with_the_opposite_sign():
    sigma = 0.7
    x, f, network, out = ask("edm-v", sigma)
    total = sigma**2 + 0.25
    expected = 0.25 / total * x - sigma * 0.5 / math.sqrt(total) * f
    assert torch.allclose(out, expected, atol=1e-6)
    assert float(network.c_noise) == pytest.approx(math.log(sigma) / 4)


def test_the_linear_schedule_is_the_product_of_its_betas():
    table, abar = sigmas(linear_schedule()).tolist(), 1.0
    for t in range(1000):
        abar *= 1 - (1e-4 + (0.02 - 1e-4) * t / 999)
        assert table[t] == pytest.approx(math.sqrt((1 - abar) / abar), rel=1e-9)
    assert table[0] == pytest.approx(0.01, rel=1e-3)
    assert table[-1] == pytest.approx(157, rel=0.01)


def discrete(prediction, time="interpolated", **noise):
    return {"prediction": prediction, "time": time, "noise": {**linear_schedule(), **noise}}


@pytest.mark.parametrize("step", [0, 1, 500, 999])
@pytest.mark.parametrize("prediction", ["epsilon", "v", "sample"])
def test_a_network_that_knows_the_answer_gives_the_clean_image(prediction, step):
    """x_t, eps, v and x0 are built by their definitions; D must return x0."""
    table = sigmas(linear_schedule())
    sigma = float(table[step])
    abar = 1 / (1 + sigma**2)
    clean, noise = torch.randn(1, 1, 4, 4), torch.randn(1, 1, 4, 4)
    answers = {
        "epsilon": noise,
        "v": math.sqrt(abar) * noise - math.sqrt(1 - abar) * clean,
        "sample": clean,
    }
    # a network with learned variances returns further channels, which are dropped
    network = Recorder(torch.cat([answers[prediction], torch.full_like(clean, 99)], dim=1))
    out = precondition("discrete", network, 0.5, discrete(prediction))(clean + sigma * noise, sigma)
    assert torch.allclose(out, clean, atol=1e-4 * max(1, sigma))
    seen = math.sqrt(abar) * clean + math.sqrt(1 - abar) * noise
    assert torch.allclose(network.x, seen, atol=1e-5)
    assert float(network.c_noise) == pytest.approx(step, abs=1e-2)


def test_steps_between_two_levels_are_interpolated_in_the_logarithm():
    table = sigmas(linear_schedule())
    between = math.sqrt(float(table[300] * table[301]))
    _, _, network, _ = ask("discrete", between, discrete("epsilon"))
    assert float(network.c_noise) == pytest.approx(300.5, abs=1e-2)
    _, _, network, _ = ask("discrete", between * 1.001, discrete("epsilon", "nearest"))
    assert float(network.c_noise) == 301


@pytest.mark.parametrize(("sigma", "step"), [(1e-6, 0), (1e6, 999)])
def test_levels_beyond_the_schedule_take_its_end(sigma, step):
    _, _, network, _ = ask("discrete", sigma, discrete("epsilon"))
    assert float(network.c_noise) == step


def test_other_schedules():
    scaled = sigmas({**linear_schedule(), "schedule": "scaled-linear"})
    beta = (math.sqrt(1e-4) + math.sqrt(0.02)) / 2
    ratio = (1 + scaled[499].item() ** 2) / (1 + scaled[500].item() ** 2)
    assert 1 - ratio == pytest.approx(beta**2, rel=2e-2)
    cosine = sigmas({**linear_schedule(), "schedule": "cosine"})
    f = [math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2 for t in (0, 0.5)]
    assert cosine[499].item() == pytest.approx(math.sqrt(f[0] / f[1] - 1), rel=1e-6)
    given = {**linear_schedule(), "steps": 2, "schedule": "given", "betas": [0.1, 0.5]}
    assert sigmas(given).tolist() == pytest.approx([math.sqrt(1 / 9), math.sqrt(1 / 0.45 - 1)])


GIVEN = {**linear_schedule(), "steps": 3, "schedule": "given"}


@pytest.mark.parametrize(
    "changes",
    [
        {"prediction": "magic"},
        {"time": "later"},
        {"noise": []},
        {"noise": {}},
        {"extra": 1},
        {"noise": {**linear_schedule(), "steps": 10**9}},
        {"noise": {**linear_schedule(), "steps": 1}},
        {"noise": {**linear_schedule(), "beta_end": 1.0}},
        {"noise": {**linear_schedule(), "beta_start": -1}},
        {"noise": {**linear_schedule(), "beta_start": "0.1"}},
        {"noise": {**linear_schedule(), "schedule": "given"}},
        {"noise": {**linear_schedule(), "betas": [0.1]}},
        {"noise": {**GIVEN, "betas": [0.1, math.nan, 0.1]}},
        {"noise": {**linear_schedule(), "beta_start": 0.5, "beta_end": 0.9}},
    ],
)
def test_absurd_schedules_are_refused(changes):
    with pytest.raises(RequestError):
        precondition("discrete", nn.Identity(), 0.5, {**discrete("epsilon"), **changes})


@pytest.mark.parametrize("name", ["edm", "vp", "ve", "iddpm"])
def test_arguments_are_refused_where_there_are_none(name):
    with pytest.raises(RequestError, match="no arguments"):
        precondition(name, nn.Identity(), 0.5, {"prediction": "epsilon"})
