"""The DDPM++ / NCSN++ U-Net: the public checkpoint's shape, and its formulas."""

import pytest
import torch
from unet_reference import randomise, song

from engine.priors.networks import build_network
from engine.priors.networks.song import DEFAULTS
from engine.priors.precondition import precondition
from engine.spec.errors import RequestError

TINY = {
    **DEFAULTS,
    "img_resolution": 16,
    "in_channels": 1,
    "out_channels": 1,
    "model_channels": 16,
    "channel_mult": [1, 2, 2],
    "num_blocks": 2,
    "attn_resolutions": [8],
}
NCSNPP = {
    "embedding_type": "fourier",
    "channel_mult_noise": 2,
    "encoder_type": "residual",
    "resample_filter": [1, 3, 3, 1],
}


def test_the_public_ct_configuration_has_the_public_counts():
    kwargs = {**DEFAULTS, "img_resolution": 256, "in_channels": 1, "out_channels": 1}
    kwargs["channel_mult"] = [1, 1, 2, 2, 2, 2, 2]
    with torch.device("meta"):
        denoiser = precondition("edm", build_network("song-unet", kwargs), 0.5)
    state = denoiser.state_dict()
    assert sum(p.numel() for p in denoiser.parameters()) == 103_065_729
    assert len(state) == 936
    assert all(name.startswith("model.") for name in state)
    attending = [n.split(".")[2] for n in state if n.endswith("qkv.weight")]
    places = [f"model.enc.16x16_block{i}" for i in range(4)]
    places += ["model.dec.4x4_in0", "model.dec.16x16_block4"]
    assert [n.rsplit(".", 2)[0] for n in state if n.endswith("qkv.weight")] == places
    assert len(attending) == 6


def test_names_come_in_the_public_order():
    with torch.device("meta"):
        kwargs = {**TINY, "label_dim": 3, "augment_dim": 9, **NCSNPP}
        names = list(build_network("song-unet", kwargs).state_dict())
    assert names[:6] == [
        "map_noise.freqs",
        "map_label.weight",
        "map_label.bias",
        "map_augment.weight",
        "map_layer0.weight",
        "map_layer0.bias",
    ]
    block = [n.removeprefix("enc.8x8_down.") for n in names if n.startswith("enc.8x8_down.")]
    assert block == [
        "norm0.weight",
        "norm0.bias",
        "conv0.weight",
        "conv0.bias",
        "conv0.resample_filter",
        "affine.weight",
        "affine.bias",
        "norm1.weight",
        "norm1.bias",
        "conv1.weight",
        "conv1.bias",
        "skip.weight",
        "skip.bias",
        "skip.resample_filter",
    ]
    assert names[-4:] == [
        "dec.16x16_aux_norm.weight",
        "dec.16x16_aux_norm.bias",
        "dec.16x16_aux_conv.weight",
        "dec.16x16_aux_conv.bias",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"label_dim": 3, "augment_dim": 9},
        NCSNPP,
        {"encoder_type": "skip", "decoder_type": "skip"},
        {"encoder_type": "skip", "decoder_type": "skip", "resample_filter": [1, 3, 3, 1]},
        {"in_channels": 2, "out_channels": 2, "channel_mult": [2, 1], "num_blocks": 1},
    ],
)
def test_outputs_equal_the_formulas(changes):
    kwargs = {**TINY, **changes}
    network = randomise(build_network("song-unet", kwargs))
    x = torch.randn(2, kwargs["in_channels"], 16, 16)
    c_noise = torch.tensor([-1.3, 0.7])
    expected = song(network.state_dict(), x, c_noise, kwargs["resample_filter"])
    out = network(x, c_noise)
    assert out.shape == x.shape
    assert (out - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize(("height", "width"), [(16, 16), (24, 32), (19, 33), (1, 1), (3, 50)])
def test_images_of_any_size_pass(height, width):
    network = randomise(build_network("song-unet", TINY))
    x = torch.randn(1, 1, height, width)
    assert network(x, torch.zeros(1)).shape == x.shape


def test_an_image_with_its_continuation_is_not_padded():
    """A size that the pyramid divides goes through unchanged: no border is invented."""
    network = randomise(build_network("song-unet", TINY))
    x, c_noise = torch.randn(1, 1, 24, 20), torch.zeros(1)
    expected = song(network.state_dict(), x, c_noise)
    assert torch.allclose(network(x, c_noise), expected, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_channels": 10**6},
        {"model_channels": 0},
        {"model_channels": True},
        {"model_channels": 18},
        {"channel_mult": []},
        {"channel_mult": [1] * 9},
        {"channel_mult": [1, 10**9]},
        {"channel_mult": "12"},
        {"channel_mult": [1.5]},
        {"num_blocks": 10**9},
        {"img_resolution": 17},
        {"img_resolution": -16},
        {"attn_resolutions": list(range(1, 100))},
        {"embedding_type": "os.system"},
        {"encoder_type": ["standard"]},
        {"resample_filter": [1, 2]},
        {"resample_filter": [[1, 1]]},
        {"in_channels": 10**9},
        {"label_dim": -1},
        {"unknown": 1},
    ],
)
def test_absurd_arguments_are_refused(changes):
    with torch.device("meta"), pytest.raises(RequestError):
        build_network("song-unet", {**TINY, **changes})
