"""The precision of a denoiser is asked for, checked, recorded, and changes no shared prior."""

import pytest
import torch
from torch import nn

from engine.physics.units import IntensityMap
from engine.priors import network_prior
from engine.priors.analytic import TVPrior
from engine.priors.network_prior import NetworkPrior, check_precision, in_precision
from engine.priors.prior import PriorInfo
from engine.runs.prepare import check_job
from engine.spec.errors import RequestError
from engine.spec.job import Job


class Watched(nn.Module):
    """A denoiser that remembers whether it was to compute in bfloat16."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.seen = []

    def forward(self, x, sigma):
        self.seen.append(torch.is_autocast_enabled("cpu"))
        return self.scale * x


@pytest.fixture
def prior():
    info = PriorInfo("w", 1, IntensityMap("hu", 1000.0), None, 0, 10, "none", "none", "0" * 64)
    return NetworkPrior(Watched(), info)


@pytest.fixture(params=[True, False])
def supported(request, monkeypatch):
    monkeypatch.setattr(network_prior, "bf16_is_supported", lambda device="cpu": request.param)
    return request.param


def test_the_denoiser_computes_as_asked_and_the_shared_one_as_before(prior, supported):
    x = torch.zeros(2, 1, 4, 4)
    in_precision(prior, "bf16")(x, 1.0)
    prior(x, 1.0)
    in_precision(prior, "fp32")(x, 1.0)
    assert prior.denoiser.seen == [supported] * 2 + [False] * 4
    assert in_precision(prior, "fp32") is prior


def test_a_prior_without_a_network_has_no_precision():
    prior = TVPrior(IntensityMap("hu", 1000.0), 1)
    assert in_precision(prior, "bf16") is prior


def test_what_the_processor_lacks_is_refused(supported):
    job = Job("demo:ct", precision="bf16")
    if supported:
        check_job(job)
    else:
        with pytest.raises(RequestError, match="--precision bf16"):
            check_job(job)


def test_an_unknown_precision_is_refused_by_name():
    with pytest.raises(RequestError, match="--precision 'half' is not known"):
        check_precision("half", "cpu")
    with pytest.raises(RequestError, match="wrong kind"):
        Job.from_dict({"input": "demo:ct", "precision": 16})


def test_a_record_from_before_means_full_precision():
    assert Job.from_dict({"input": "demo:ct"}).precision == "fp32"
