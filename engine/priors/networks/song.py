"""The DDPM++ and NCSN++ U-Net (Song et al. 2021) in the form of Karras et al. 2022.

State dicts of the public class ``SongUNet`` load with their own names. Dropout, which acts in
training only, is left out.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.priors.networks.any_size import (
    AnySizeNetwork,
    check_levels,
    check_names,
    one_of,
    whole,
    wholes,
)
from engine.priors.networks.blocks import (
    FourierEmbedding,
    ResamplingConv,
    UNetBlock,
    group_norm,
    positional_embedding,
    swap_halves,
)
from engine.priors.networks.compact import full_precision

EPS = 1e-6
TAPS = ([1, 1], [1, 3, 3, 1])

DEFAULTS: dict[str, Any] = {
    "label_dim": 0,
    "augment_dim": 0,
    "model_channels": 128,
    "channel_mult": [1, 2, 2, 2],
    "channel_mult_emb": 4,
    "num_blocks": 4,
    "attn_resolutions": [16],
    "embedding_type": "positional",
    "channel_mult_noise": 1,
    "encoder_type": "standard",
    "decoder_type": "standard",
    "resample_filter": [1, 1],
}
REQUIRED = ("img_resolution", "in_channels", "out_channels")


def check_kwargs(kwargs: dict[str, Any]) -> None:
    """Raise RequestError unless these build a network of sane size."""
    check_names(kwargs, (*REQUIRED, *DEFAULTS))
    resolution = whole(kwargs, "img_resolution", 4, 4096)
    whole(kwargs, "in_channels", 1, 8)
    whole(kwargs, "out_channels", 1, 16)
    whole(kwargs, "label_dim", 0, 4096)
    whole(kwargs, "augment_dim", 0, 64)
    whole(kwargs, "model_channels", 4, 512)
    mult = wholes(kwargs, "channel_mult", 1, 8, 1, 8)
    whole(kwargs, "channel_mult_emb", 1, 8)
    whole(kwargs, "channel_mult_noise", 1, 4)
    whole(kwargs, "num_blocks", 1, 8)
    wholes(kwargs, "attn_resolutions", 1, 4096, 0, 8)
    one_of(kwargs, "embedding_type", ("positional", "fourier"))
    one_of(kwargs, "encoder_type", ("standard", "skip", "residual"))
    one_of(kwargs, "decoder_type", ("standard", "skip"))
    one_of(
        {"resample_filter": list(wholes(kwargs, "resample_filter", 1, 3, 2, 4))},
        "resample_filter",
        TAPS,
    )
    check_levels(resolution, len(mult))


class SongUNet(AnySizeNetwork):
    """F(x, c_noise); the arguments are those of the public class.

    Parameters
    ----------
    img_resolution
        Side of the training images. It names the layers and places the attention; images of
        other sizes are taken too.
    label_dim
        Of class-conditional checkpoints, which are used without a class.
    augment_dim
        Of checkpoints trained with augmentation labels, which are left out in use.
    channel_mult
        Width of each level in units of ``model_channels``, finest first.
    attn_resolutions
        Map sizes (at training size) with attention: every encoder block, and the last decoder
        block. The first decoder block always attends.
    embedding_type
        'positional' (DDPM++) or 'fourier' (NCSN++).
    encoder_type, decoder_type
        How the input is carried down and outputs are carried up besides the blocks.
    """

    def __init__(
        self,
        img_resolution: int,
        in_channels: int,
        out_channels: int,
        label_dim: int,
        augment_dim: int,
        model_channels: int,
        channel_mult: list[int],
        channel_mult_emb: int,
        num_blocks: int,
        attn_resolutions: list[int],
        embedding_type: str,
        channel_mult_noise: int,
        encoder_type: str,
        decoder_type: str,
        resample_filter: list[int],
    ) -> None:
        super().__init__()
        self.native_size, self.multiple = img_resolution, 2 ** (len(channel_mult) - 1)
        self.noise_channels = model_channels * channel_mult_noise
        embedding = model_channels * channel_mult_emb
        shared: dict[str, Any] = {
            "embedding": embedding,
            "adaptive": False,
            "project": True,
            "skip_scale": math.sqrt(0.5),
            "eps": EPS,
            "taps": resample_filter,
        }
        resample: dict[str, Any] = {"taps": resample_filter}

        self.map_noise: FourierEmbedding | None = None
        if embedding_type == "fourier":
            self.map_noise = FourierEmbedding(self.noise_channels)
        self.map_label = nn.Linear(label_dim, self.noise_channels) if label_dim else None
        self.map_augment = (
            nn.Linear(augment_dim, self.noise_channels, bias=False) if augment_dim else None
        )
        self.map_layer0 = nn.Linear(self.noise_channels, embedding)
        self.map_layer1 = nn.Linear(embedding, embedding)

        self.enc = nn.ModuleDict()
        width, carried = model_channels, in_channels
        widths: list[int] = []
        for level, mult in enumerate(channel_mult):
            size = f"{img_resolution >> level}x{img_resolution >> level}"
            heads = int(img_resolution >> level in attn_resolutions)
            if level == 0:
                self.enc[f"{size}_conv"] = ResamplingConv(in_channels, width, 3)
            else:
                self.enc[f"{size}_down"] = UNetBlock(width, width, down=True, **shared)
                if encoder_type == "skip":
                    self.enc[f"{size}_aux_down"] = ResamplingConv(
                        carried, carried, 0, down=True, **resample
                    )
                    self.enc[f"{size}_aux_skip"] = ResamplingConv(carried, width, 1)
                if encoder_type == "residual":
                    self.enc[f"{size}_aux_residual"] = ResamplingConv(
                        carried, width, 3, down=True, filter_last=True, **resample
                    )
                    carried = width
            widths.append(width)
            for index in range(num_blocks):
                block = UNetBlock(width, model_channels * mult, heads=heads, **shared)
                self.enc[f"{size}_block{index}"] = block
                width = model_channels * mult
                widths.append(width)

        self.dec = nn.ModuleDict()
        last = len(channel_mult) - 1
        for level, mult in reversed(list(enumerate(channel_mult))):
            size = f"{img_resolution >> level}x{img_resolution >> level}"
            attends = img_resolution >> level in attn_resolutions
            if level == last:
                self.dec[f"{size}_in0"] = UNetBlock(width, width, heads=1, **shared)
                self.dec[f"{size}_in1"] = UNetBlock(width, width, **shared)
            else:
                self.dec[f"{size}_up"] = UNetBlock(width, width, up=True, **shared)
            for index in range(num_blocks + 1):
                heads = int(attends and index == num_blocks)
                wide, width = width + widths.pop(), model_channels * mult
                self.dec[f"{size}_block{index}"] = UNetBlock(wide, width, heads=heads, **shared)
            if decoder_type == "skip" or level == 0:
                if decoder_type == "skip" and level < last:
                    self.dec[f"{size}_aux_up"] = ResamplingConv(
                        out_channels, out_channels, 0, up=True, **resample
                    )
                self.dec[f"{size}_aux_norm"] = group_norm(width, EPS)
                self.dec[f"{size}_aux_conv"] = ResamplingConv(width, out_channels, 3)

    def embed(self, c_noise: Tensor) -> Tensor:
        if self.map_noise is not None:
            features = self.map_noise(c_noise)
        else:
            features = positional_embedding(c_noise, self.noise_channels, endpoint=True)
        features = swap_halves(features)
        if self.map_label is not None:
            features = features + self.map_label.bias  # the label vector of "no class" is zero
        return F.silu(self.map_layer1(F.silu(self.map_layer0(features))))

    def evaluate(self, x: Tensor, c_noise: Tensor) -> Tensor:
        with full_precision(x):
            embedding = self.embed(c_noise)
        carried, skips = x, list[Tensor]()
        for name, module in self.enc.items():
            if "aux_down" in name:
                carried = module(carried)
            elif "aux_skip" in name:
                x = skips[-1] = x + module(carried)
            elif "aux_residual" in name:
                x = skips[-1] = carried = (x + module(carried)) * math.sqrt(0.5)
            else:
                x = module(x, embedding) if isinstance(module, UNetBlock) else module(x)
                skips.append(x)
        out: Tensor | None = None
        for name, module in self.dec.items():
            if "aux_up" in name:
                out = module(out)
            elif "aux_norm" in name:
                normed = module(x)
            elif "aux_conv" in name:
                last = module(F.silu(normed))
                out = last if out is None else out + last
            else:
                if x.shape[1] != module.in_channels:
                    x = torch.cat([x, skips.pop()], dim=1)
                x = module(x, embedding)
        assert out is not None
        return out
