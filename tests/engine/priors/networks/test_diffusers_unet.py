"""The UNet2DModel of diffusers: the public sizes, and its formulas."""

import pytest
import torch
from ddpm_reference import diffusers
from unet_reference import randomise

from engine.priors.networks import build_network
from engine.priors.networks.diffusers_unet import DEFAULTS
from engine.spec.errors import RequestError

TINY = {
    **DEFAULTS,
    "img_resolution": 16,
    "in_channels": 1,
    "out_channels": 1,
    "block_out_channels": [16, 32],
    "down_attention": [False, True],
    "up_attention": [True, False],
    "layers_per_block": 1,
    "norm_num_groups": 8,
    "attention_head_dim": 16,
}
# of the networks of Ho et al. 2020, as published in this format
DDPM = {
    **DEFAULTS,
    "in_channels": 3,
    "out_channels": 3,
    "freq_shift": 1,
    "flip_sin_to_cos": False,
    "downsample_padding": 0,
    "attention_head_dim": 0,
    "norm_eps": 1e-6,
}


@pytest.mark.parametrize(
    ("size", "widths", "attending", "count"),
    [
        (32, [128, 256, 256, 256], 1, 35_746_307),
        (256, [128, 128, 256, 256, 512, 512], 4, 113_673_219),
    ],
)
def test_the_public_configurations_have_the_public_counts(size, widths, attending, count):
    down = [level == attending for level in range(len(widths))]
    kwargs = {**DDPM, "img_resolution": size, "block_out_channels": widths}
    kwargs |= {"down_attention": down, "up_attention": down[::-1]}
    with torch.device("meta"):
        network = build_network("diffusers-unet", kwargs)
    assert sum(p.numel() for p in network.parameters()) == count
    names = set(network.state_dict())
    level = f"down_blocks.{attending}"
    assert f"{level}.attentions.0.to_out.0.weight" in names
    assert f"{level}.resnets.0.time_emb_proj.bias" in names
    assert "mid_block.attentions.0.group_norm.weight" in names
    assert "down_blocks.0.downsamplers.0.conv.weight" in names


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention_head_dim": 0},
        {"downsample_padding": 0, "freq_shift": 1, "flip_sin_to_cos": False, "norm_eps": 1e-6},
        {"mid_attention": False, "layers_per_block": 2},
    ],
)
def test_outputs_equal_the_formulas(changes):
    kwargs = {**TINY, **changes}
    network = randomise(build_network("diffusers-unet", kwargs))
    x, t = torch.randn(2, 1, 16, 16), torch.tensor([3.0, 712.5])
    expected = diffusers(
        network.state_dict(),
        x,
        t,
        kwargs["norm_num_groups"],
        kwargs["norm_eps"],
        kwargs["attention_head_dim"],
        kwargs["downsample_padding"],
        kwargs["flip_sin_to_cos"],
        kwargs["freq_shift"],
    )
    assert (network(x, t) - expected).abs().max() < 1e-4 * expected.abs().max()


def test_images_of_any_size_pass():
    network, x = randomise(build_network("diffusers-unet", TINY)), torch.randn(1, 1, 19, 21)
    assert network(x, torch.zeros(1)).shape == x.shape


@pytest.mark.parametrize(
    "changes",
    [
        {"block_out_channels": [16, 10**9]},
        {"block_out_channels": [16, 30]},
        {"down_attention": [True]},
        {"up_attention": [1, 0]},
        {"layers_per_block": 0},
        {"norm_eps": 0.0},
        {"norm_eps": "1e-5"},
        {"norm_num_groups": 0},
        {"attention_head_dim": -8},
        {"img_resolution": 15},
    ],
)
def test_absurd_arguments_are_refused(changes):
    with torch.device("meta"), pytest.raises(RequestError):
        build_network("diffusers-unet", {**TINY, **changes})
