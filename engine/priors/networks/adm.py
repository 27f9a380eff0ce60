"""The ADM U-Net (Dhariwal and Nichol 2021) in the form of Karras et al. 2022.

State dicts of the public class ``DhariwalUNet`` load with their own names. Dropout, which acts
in training only, is left out.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.priors.networks.any_size import AnySizeNetwork, check_levels, check_names, whole, wholes
from engine.priors.networks.blocks import (
    ResamplingConv,
    UNetBlock,
    group_norm,
    positional_embedding,
)
from engine.priors.networks.compact import full_precision
from engine.spec.errors import RequestError

EPS = 1e-5
CHANNELS_PER_HEAD = 64

DEFAULTS: dict[str, Any] = {
    "label_dim": 0,
    "augment_dim": 0,
    "model_channels": 192,
    "channel_mult": [1, 2, 3, 4],
    "channel_mult_emb": 4,
    "num_blocks": 3,
    "attn_resolutions": [32, 16, 8],
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
    channels = whole(kwargs, "model_channels", 4, 512)
    mult = wholes(kwargs, "channel_mult", 1, 8, 1, 8)
    whole(kwargs, "channel_mult_emb", 1, 8)
    whole(kwargs, "num_blocks", 1, 8)
    attention = wholes(kwargs, "attn_resolutions", 1, 4096, 0, 8)
    check_levels(resolution, len(mult))
    for level, factor in enumerate(mult):
        if level == len(mult) - 1 or resolution >> level in attention:
            heads(channels * factor)


def heads(channels: int) -> int:
    """One head for every 64 channels."""
    count = channels // CHANNELS_PER_HEAD
    if not count or channels % count:
        raise RequestError(
            f"The network's {channels} channels do not divide into attention heads of "
            f"{CHANNELS_PER_HEAD}."
        )
    return count


class DhariwalUNet(AnySizeNetwork):
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
        Map sizes (at training size) whose blocks attend. The first decoder block always does.
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
    ) -> None:
        super().__init__()
        self.native_size, self.multiple = img_resolution, 2 ** (len(channel_mult) - 1)
        self.model_channels = model_channels
        embedding = model_channels * channel_mult_emb
        shared: dict[str, Any] = {
            "embedding": embedding,
            "adaptive": True,
            "project": False,
            "skip_scale": 1.0,
            "eps": EPS,
        }
        self.map_augment = (
            nn.Linear(augment_dim, model_channels, bias=False) if augment_dim else None
        )
        self.map_layer0 = nn.Linear(model_channels, embedding)
        self.map_layer1 = nn.Linear(embedding, embedding)
        self.map_label = nn.Linear(label_dim, embedding, bias=False) if label_dim else None

        def block(cin: int, cout: int, attends: bool = False, **resample: Any) -> UNetBlock:
            count = heads(cout) if attends else 0
            return UNetBlock(cin, cout, heads=count, **resample, **shared)

        self.enc = nn.ModuleDict()
        width = model_channels * channel_mult[0]
        widths: list[int] = []
        for level, mult in enumerate(channel_mult):
            resolution = img_resolution >> level
            size, attends = f"{resolution}x{resolution}", resolution in attn_resolutions
            if level == 0:
                self.enc[f"{size}_conv"] = ResamplingConv(in_channels, width, 3)
            else:
                self.enc[f"{size}_down"] = block(width, width, down=True)
            widths.append(width)
            for index in range(num_blocks):
                self.enc[f"{size}_block{index}"] = block(width, model_channels * mult, attends)
                width = model_channels * mult
                widths.append(width)

        self.dec = nn.ModuleDict()
        for level, mult in reversed(list(enumerate(channel_mult))):
            resolution = img_resolution >> level
            size, attends = f"{resolution}x{resolution}", resolution in attn_resolutions
            if level == len(channel_mult) - 1:
                self.dec[f"{size}_in0"] = block(width, width, True)
                self.dec[f"{size}_in1"] = block(width, width)
            else:
                self.dec[f"{size}_up"] = block(width, width, up=True)
            for index in range(num_blocks + 1):
                wide, width = width + widths.pop(), model_channels * mult
                self.dec[f"{size}_block{index}"] = block(wide, width, attends)
        self.out_norm = group_norm(width, EPS)
        self.out_conv = ResamplingConv(width, out_channels, 3)

    def embed(self, c_noise: Tensor) -> Tensor:
        # Without a class its label vector is zero, and the label layer has no bias.
        features = positional_embedding(c_noise, self.model_channels, endpoint=False)
        return F.silu(self.map_layer1(F.silu(self.map_layer0(features))))

    def evaluate(self, x: Tensor, c_noise: Tensor) -> Tensor:
        with full_precision(x):
            embedding = self.embed(c_noise)
        skips: list[Tensor] = []
        for module in self.enc.values():
            x = module(x, embedding) if isinstance(module, UNetBlock) else module(x)
            skips.append(x)
        for module in self.dec.values():
            if x.shape[1] != module.in_channels:
                x = torch.cat([x, skips.pop()], dim=1)
            x = module(x, embedding)
        return self.out_conv(F.silu(self.out_norm(x)))
