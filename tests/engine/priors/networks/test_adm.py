"""The ADM U-Net: the public checkpoint's shape, and its formulas."""

import pytest
import torch
from unet_reference import adm, randomise

from engine.priors.networks import build_network
from engine.priors.networks.adm import DEFAULTS
from engine.priors.precondition import precondition
from engine.spec.errors import RequestError

TINY = {
    **DEFAULTS,
    "img_resolution": 16,
    "in_channels": 2,
    "out_channels": 2,
    "model_channels": 32,
    "channel_mult": [1, 2, 4],
    "num_blocks": 1,
    "attn_resolutions": [8, 4],
}


def test_the_public_mri_configuration_has_the_public_counts():
    kwargs = {**DEFAULTS, "img_resolution": 320, "in_channels": 2, "out_channels": 2}
    kwargs |= {"model_channels": 128, "channel_mult": [1, 1, 1, 2, 2], "num_blocks": 1}
    kwargs |= {"attn_resolutions": [16]}
    with torch.device("meta"):
        denoiser = precondition("edm", build_network("adm-unet", kwargs), 0.5)
    state = denoiser.state_dict()
    assert sum(p.numel() for p in denoiser.parameters()) == 26_002_050
    assert len(state) == 304
    # 16 is none of the sizes 320, 160, 80, 40, 20, so only the middle attends
    assert [n for n in state if n.endswith("qkv.weight")] == ["model.dec.20x20_in0.qkv.weight"]
    assert denoiser.model.dec["20x20_in0"].heads == 4
    assert "model.enc.160x160_down.skip.resample_filter" in state
    assert "model.enc.160x160_down.skip.weight" not in state


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attn_resolutions": []},
        {"label_dim": 5, "augment_dim": 9},
        {"channel_mult": [2, 2], "num_blocks": 2, "attn_resolutions": [16]},
        {"out_channels": 4},
    ],
)
def test_outputs_equal_the_formulas(changes):
    kwargs = {**TINY, **changes}
    network = randomise(build_network("adm-unet", kwargs))
    x, c_noise = torch.randn(2, 2, 16, 16), torch.tensor([-1.3, 0.7])
    expected = adm(network.state_dict(), x, c_noise)
    out = network(x, c_noise)
    assert out.shape == (2, kwargs["out_channels"], 16, 16)
    assert (out - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize(("height", "width"), [(24, 32), (19, 33), (1, 1)])
def test_images_of_any_size_pass(height, width):
    network = randomise(build_network("adm-unet", TINY))
    x = torch.randn(1, 2, height, width)
    assert network(x, torch.zeros(1)).shape == x.shape


@pytest.mark.parametrize(
    "changes",
    [
        {"model_channels": 10**6},
        {"model_channels": 8, "channel_mult": [1, 2]},
        {"model_channels": 50},
        {"channel_mult": [1] * 20},
        {"num_blocks": 0},
        {"attn_resolutions": ["8"]},
        {"img_resolution": 18},
        {"img_resolution": 10**9},
        {"encoder_type": "standard"},
    ],
)
def test_absurd_arguments_are_refused(changes):
    with torch.device("meta"), pytest.raises(RequestError):
        build_network("adm-unet", {**TINY, **changes})
