"""The U-Net of guided-diffusion: the public size, and its formulas."""

import pytest
import torch
from ddpm_reference import guided
from unet_reference import randomise

from engine.priors.networks import build_network
from engine.priors.networks.guided import DEFAULTS
from engine.spec.errors import RequestError

TINY = {
    **DEFAULTS,
    "img_resolution": 16,
    "in_channels": 1,
    "out_channels": 2,
    "model_channels": 32,
    "channel_mult": [1, 2, 2],
    "num_res_blocks": 1,
    "attention_resolutions": [8],
}


def test_the_public_imagenet_configuration_has_the_public_count():
    kwargs = {**DEFAULTS, "img_resolution": 256, "in_channels": 3, "out_channels": 6}
    kwargs |= {"model_channels": 256, "channel_mult": [1, 1, 2, 2, 4, 4], "num_head_channels": 64}
    kwargs |= {"attention_resolutions": [32, 16, 8], "resblock_updown": True}
    with torch.device("meta"):
        network = build_network("guided-unet", kwargs)
    assert sum(p.numel() for p in network.parameters()) == 552_814_086
    names = set(network.state_dict())
    assert {"time_embed.0.weight", "time_embed.2.bias", "input_blocks.0.0.weight"} <= names
    assert {"middle_block.1.qkv.weight", "middle_block.1.proj_out.bias", "out.2.weight"} <= names
    assert network.state_dict()["middle_block.1.qkv.weight"].shape == (3072, 1024, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_head_channels": 16},
        {"use_new_attention_order": True, "num_heads": 2},
        {"resblock_updown": True},
        {"use_scale_shift_norm": False},
        {"num_res_blocks": 2, "channel_mult": [1.0, 2.0]},
    ],
)
def test_outputs_equal_the_formulas(changes):
    kwargs = {**TINY, **changes}
    network = randomise(build_network("guided-unet", kwargs))
    x, t = torch.randn(2, 1, 16, 16), torch.tensor([3.0, 712.5])
    per_head, heads = kwargs["num_head_channels"], kwargs["num_heads"]
    expected = guided(
        network.state_dict(),
        x,
        t,
        lambda channels: heads if per_head == -1 else channels // per_head,
        kwargs["use_new_attention_order"],
        kwargs["num_res_blocks"],
    )
    out = network(x, t)
    assert out.shape == (2, 2, 16, 16)
    assert (out - expected).abs().max() < 1e-4 * expected.abs().max()


def test_images_of_any_size_pass():
    network, x = randomise(build_network("guided-unet", TINY)), torch.randn(1, 1, 19, 21)
    assert network(x, torch.zeros(1)).shape == (1, 2, 19, 21)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_channels": 10**6},
        {"channel_mult": [1, 1e9]},
        {"channel_mult": [float("nan")]},
        {"channel_mult": [0.3]},
        {"channel_mult": None},
        {"num_heads": 7},
        {"num_head_channels": 48},
        {"num_head_channels": 0},
        {"num_res_blocks": 10**9},
        {"resblock_updown": 1},
        {"attention_resolutions": "8"},
        {"img_resolution": 18},
        {"dropout": 0.1},
    ],
)
def test_absurd_arguments_are_refused(changes):
    with torch.device("meta"), pytest.raises(RequestError):
        build_network("guided-unet", {**TINY, **changes})
