"""The ``UNet2DModel`` of diffusers in its usual form, under the names of its checkpoints.

Covered are the blocks of the published unconditional models (DDPM and its kin): plain and
attending down and up blocks, the standard middle, positional time embedding. The second argument
is whatever the scheduler calls time, and may be fractional.
"""

from __future__ import annotations

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
from engine.priors.networks.compact import full_precision
from engine.spec.errors import RequestError

DEFAULTS: dict[str, Any] = {
    "freq_shift": 0,
    "flip_sin_to_cos": True,
    "down_attention": [False, True, True, True],
    "up_attention": [True, True, True, False],
    "block_out_channels": [224, 448, 672, 896],
    "layers_per_block": 2,
    "mid_attention": True,
    "downsample_padding": 1,
    "attention_head_dim": 8,
    "norm_num_groups": 32,
    "norm_eps": 1e-5,
}
REQUIRED = ("img_resolution", "in_channels", "out_channels")


def check_kwargs(kwargs: dict[str, Any]) -> None:
    """Raise RequestError unless these build a network of sane size."""
    check_names(kwargs, (*REQUIRED, *DEFAULTS))
    resolution = whole(kwargs, "img_resolution", 4, 4096)
    whole(kwargs, "in_channels", 1, 8)
    whole(kwargs, "out_channels", 1, 16)
    whole(kwargs, "freq_shift", 0, 1)
    whole(kwargs, "layers_per_block", 1, 8)
    whole(kwargs, "downsample_padding", 0, 1)
    one_of(kwargs, "flip_sin_to_cos", (True, False))
    one_of(kwargs, "mid_attention", (True, False))
    groups = whole(kwargs, "norm_num_groups", 1, 128)
    head = whole(kwargs, "attention_head_dim", 0, 2048)
    widths = wholes(kwargs, "block_out_channels", 4, 2048, 1, 8)
    eps = kwargs["norm_eps"]
    if type(eps) is not float or not 0 < eps < 1e-2:
        raise RequestError("The network's 'norm_eps' must be a small positive number.")
    for name in ("down_attention", "up_attention"):
        flags = kwargs[name]
        right = isinstance(flags, list) and all(type(flag) is bool for flag in flags)
        if not right or len(flags) != len(widths):
            raise RequestError(f"The network's '{name}' must say yes or no for each level.")
    for width in widths:
        if width % groups or (head and width % head) or width % 2:
            raise RequestError(
                f"The network's {width} channels do not divide into groups or heads."
            )
    check_levels(resolution, len(widths))


class Resnet(nn.Module):
    """A residual block; the time embedding is added between its two convolutions."""

    def __init__(self, cin: int, cout: int, embedding: int, groups: int, eps: float) -> None:
        super().__init__()
        if cin % groups:
            raise RequestError(f"The network's {cin} channels do not divide into {groups} groups.")
        self.norm1 = nn.GroupNorm(groups, cin, eps)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.time_emb_proj = nn.Linear(embedding, cout)
        self.norm2 = nn.GroupNorm(groups, cout, eps)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(cin, cout, 1) if cin != cout else None

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        with full_precision(x):
            time = self.time_emb_proj(F.silu(embedding))[:, :, None, None].to(h.dtype)
        h = self.conv2(F.silu(self.norm2(h + time)))
        return h + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class Attention(nn.Module):
    """x + self-attention over all pixels."""

    def __init__(self, channels: int, head: int, groups: int, eps: float) -> None:
        super().__init__()
        self.heads = channels // head if head else 1
        self.group_norm = nn.GroupNorm(groups, channels, eps)
        self.to_q = nn.Linear(channels, channels)
        self.to_k = nn.Linear(channels, channels)
        self.to_v = nn.Linear(channels, channels)
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        with full_precision(x):
            rows = self.group_norm(x.float()).flatten(2).mT
            q, k, v = (
                part(rows).reshape(batch, height * width, self.heads, -1).transpose(1, 2)
                for part in (self.to_q, self.to_k, self.to_v)
            )
            h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
            h = self.to_out[0](h.reshape(batch, height * width, channels))
        return x + h.mT.reshape(x.shape).to(x.dtype)


class Conv(nn.Module):
    """A convolution called 'conv', before or after a change of resolution."""

    def __init__(self, channels: int, up: bool, padding: int = 1) -> None:
        super().__init__()
        self.up, self.padding = up, padding
        stride = 1 if up else 2
        self.conv = nn.Conv2d(channels, channels, 3, stride, 1 if up else padding)

    def forward(self, x: Tensor) -> Tensor:
        if self.up:
            return self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))
        # without padding the original still halves exactly, by zeros to the right and below
        return self.conv(x if self.padding else F.pad(x, (0, 1, 0, 1)))


class Level(nn.Module):
    """The blocks of one resolution, under the names of a checkpoint."""

    def __init__(self, resnets: list[Resnet], attentions: list[Attention]) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(resnets)
        self.attentions = nn.ModuleList(attentions)
        self.downsamplers = nn.ModuleList()
        self.upsamplers = nn.ModuleList()

    def down(self, x: Tensor, embedding: Tensor, skips: list[Tensor]) -> Tensor:
        """Every block's output is kept for the way up, and so is the smaller map."""
        for index, resnet in enumerate(self.resnets):
            x = resnet(x, embedding)
            x = self.attentions[index](x) if self.attentions else x
            skips.append(x)
        for sampler in self.downsamplers:
            x = sampler(x)
            skips.append(x)
        return x

    def middle(self, x: Tensor, embedding: Tensor) -> Tensor:
        x = self.resnets[0](x, embedding)
        for attention in self.attentions:
            x = attention(x)
        return self.resnets[1](x, embedding)

    def up(self, x: Tensor, embedding: Tensor, skips: list[Tensor]) -> Tensor:
        for index, resnet in enumerate(self.resnets):
            x = resnet(torch.cat([x, skips.pop()], dim=1), embedding)
            x = self.attentions[index](x) if self.attentions else x
        for sampler in self.upsamplers:
            x = sampler(x)
        return x


class DiffusersUNet(AnySizeNetwork):
    """F(x, t); arguments as in the public class but for the block types.

    Parameters
    ----------
    down_attention, up_attention
        Which levels attend, in the order of the network; ``mid_attention`` for its middle.
    attention_head_dim
        Channels per head; 0 for a single head.
    downsample_padding
        0 pads to the right and below only.
    freq_shift, flip_sin_to_cos
        Details of the time embedding.
    """

    def __init__(
        self,
        img_resolution: int,
        in_channels: int,
        out_channels: int,
        freq_shift: int,
        flip_sin_to_cos: bool,
        down_attention: list[bool],
        up_attention: list[bool],
        block_out_channels: list[int],
        layers_per_block: int,
        mid_attention: bool,
        downsample_padding: int,
        attention_head_dim: int,
        norm_num_groups: int,
        norm_eps: float,
    ) -> None:
        super().__init__()
        widths = block_out_channels
        self.native_size, self.multiple = img_resolution, 2 ** (len(widths) - 1)
        self.freq_shift, self.flip, self.time_width = freq_shift, flip_sin_to_cos, widths[0]
        embedding = 4 * widths[0]

        def resnet(cin: int, cout: int) -> Resnet:
            return Resnet(cin, cout, embedding, norm_num_groups, norm_eps)

        def attentions(channels: int, count: int) -> list[Attention]:
            options = (attention_head_dim, norm_num_groups, norm_eps)
            return [Attention(channels, *options) for _ in range(count)]

        self.conv_in = nn.Conv2d(in_channels, widths[0], 3, padding=1)
        self.time_embedding = nn.ModuleDict(
            {
                "linear_1": nn.Linear(widths[0], embedding),
                "linear_2": nn.Linear(embedding, embedding),
            }
        )
        self.down_blocks, self.up_blocks = nn.ModuleList(), nn.ModuleList()
        skips, width = [widths[0]], widths[0]
        for i, wide in enumerate(widths):
            resnets = [resnet(wide if j else width, wide) for j in range(layers_per_block)]
            level = Level(resnets, attentions(wide, layers_per_block * down_attention[i]))
            skips += [wide] * layers_per_block
            if i < len(widths) - 1:
                level.downsamplers.append(Conv(wide, False, downsample_padding))
                skips.append(wide)
            self.down_blocks.append(level)
            width = wide
        self.mid_block = Level(
            [resnet(width, width), resnet(width, width)], attentions(width, int(mid_attention))
        )
        for i, wide in enumerate(reversed(widths)):
            resnets = []
            for _ in range(layers_per_block + 1):
                resnets.append(resnet(width + skips.pop(), wide))
                width = wide
            level = Level(resnets, attentions(wide, (layers_per_block + 1) * up_attention[i]))
            if i < len(widths) - 1:
                level.upsamplers.append(Conv(wide, True))
            self.up_blocks.append(level)
        self.conv_norm_out = nn.GroupNorm(norm_num_groups, widths[0], norm_eps)
        self.conv_out = nn.Conv2d(widths[0], out_channels, 3, padding=1)

    def embed(self, c_noise: Tensor) -> Tensor:
        half = self.time_width // 2
        index = torch.arange(half, device=c_noise.device, dtype=torch.float32)
        frequencies = 10000.0 ** (-index / (half - self.freq_shift))
        phase = c_noise.float()[:, None] * frequencies
        halves = [phase.cos(), phase.sin()] if self.flip else [phase.sin(), phase.cos()]
        h = self.time_embedding["linear_1"](torch.cat(halves, dim=1))
        return self.time_embedding["linear_2"](F.silu(h))

    def evaluate(self, x: Tensor, c_noise: Tensor) -> Tensor:
        with full_precision(x):
            embedding = self.embed(c_noise)
        x = self.conv_in(x)
        skips = [x]
        for level in self.down_blocks:
            assert isinstance(level, Level)
            x = level.down(x, embedding, skips)
        x = self.mid_block.middle(x, embedding)
        for level in self.up_blocks:
            assert isinstance(level, Level)
            x = level.up(x, embedding, skips)
        return self.conv_out(F.silu(self.conv_norm_out(x)))
