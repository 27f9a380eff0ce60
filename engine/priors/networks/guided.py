"""The U-Net of guided-diffusion (Dhariwal and Nichol 2021), under the names of its checkpoints.

The second argument is the step t of a numbered schedule, which may be fractional. Dropout and
class labels, which act in training and in class-conditional sampling, are left out.
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
from engine.priors.networks.blocks import positional_embedding
from engine.priors.networks.compact import full_precision
from engine.spec.errors import RequestError

GROUPS, EPS = 32, 1e-5
FLAGS = ("conv_resample", "use_scale_shift_norm", "resblock_updown", "use_new_attention_order")

DEFAULTS: dict[str, Any] = {
    "model_channels": 128,
    "channel_mult": [1.0, 2.0, 3.0, 4.0],
    "num_res_blocks": 2,
    "attention_resolutions": [16, 8],
    "num_heads": 4,
    "num_heads_upsample": -1,
    "num_head_channels": -1,
    "conv_resample": True,
    "use_scale_shift_norm": True,
    "resblock_updown": False,
    "use_new_attention_order": False,
}
REQUIRED = ("img_resolution", "in_channels", "out_channels")


def check_kwargs(kwargs: dict[str, Any]) -> None:
    """Raise RequestError unless these build a network of sane size."""
    check_names(kwargs, (*REQUIRED, *DEFAULTS))
    resolution = whole(kwargs, "img_resolution", 8, 4096)
    whole(kwargs, "in_channels", 1, 8)
    whole(kwargs, "out_channels", 1, 16)
    channels = whole(kwargs, "model_channels", GROUPS, 512)
    whole(kwargs, "num_res_blocks", 1, 8)
    wholes(kwargs, "attention_resolutions", 1, 4096, 0, 8)
    whole(kwargs, "num_heads", 1, 64)
    for name in ("num_heads_upsample", "num_head_channels"):
        if kwargs[name] != -1:
            whole(kwargs, name, 1, 1024)
    for name in FLAGS:
        one_of(kwargs, name, (True, False))
    mult = kwargs["channel_mult"]
    if not isinstance(mult, list) or not 1 <= len(mult) <= 8:
        raise RequestError("The network's 'channel_mult' must be 1 to 8 numbers.")
    for factor in mult:
        if type(factor) not in (int, float) or not 0 < factor <= 8 or factor * channels % GROUPS:
            raise RequestError(
                f"The network's 'channel_mult' must make widths that are multiples of {GROUPS}."
            )
    check_levels(resolution, len(mult))


class Resample(nn.Module):
    """Twice or half the resolution, followed or done by a convolution if there is one."""

    def __init__(self, channels: int, up: bool, convolve: bool) -> None:
        super().__init__()
        self.up = up
        # the checkpoints call the one 'conv' and the other 'op'
        if convolve and up:
            self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        elif convolve:
            self.op = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.convolve = convolve

    def forward(self, x: Tensor) -> Tensor:
        if not self.up:
            return self.op(x) if self.convolve else F.avg_pool2d(x, 2)
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.conv(x) if self.convolve else x


class ResBlock(nn.Module):
    """A residual block conditioned on the step; ``resample`` moves it to another resolution."""

    def __init__(
        self, cin: int, cout: int, embedding: int, scale_shift: bool, resample: str = ""
    ) -> None:
        super().__init__()
        self.scale_shift = scale_shift
        self.in_layers = nn.Sequential(
            nn.GroupNorm(GROUPS, cin, EPS), nn.SiLU(), nn.Conv2d(cin, cout, 3, padding=1)
        )
        self.move = Resample(cin, resample == "up", False) if resample else None
        self.emb_layers = nn.Sequential(
            nn.SiLU(), nn.Linear(embedding, cout * (2 if scale_shift else 1))
        )
        # the empty third place was a dropout
        self.out_layers = nn.Sequential(
            nn.GroupNorm(GROUPS, cout, EPS),
            nn.SiLU(),
            nn.Identity(),
            nn.Conv2d(cout, cout, 3, padding=1),
        )
        self.skip_connection = nn.Identity() if cin == cout else nn.Conv2d(cin, cout, 1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        h = self.in_layers[1](self.in_layers[0](x))
        if self.move is not None:
            h, x = self.move(h), self.move(x)
        h = self.in_layers[2](h)
        with full_precision(x):
            condition = self.emb_layers(embedding)[:, :, None, None].to(h.dtype)
        if self.scale_shift:
            scale, shift = condition.chunk(2, dim=1)
            h = self.out_layers[0](h) * (1 + scale) + shift
        else:
            h = self.out_layers[0](h + condition)
        return self.skip_connection(x) + self.out_layers[1:](h)


class AttentionBlock(nn.Module):
    """x + self-attention over all pixels.

    The channels of ``qkv`` hold q, k, v for each head in turn, or (``new_order``) all heads for
    each of q, k, v in turn.
    """

    def __init__(self, channels: int, heads: int, new_order: bool) -> None:
        super().__init__()
        if channels % heads:
            raise RequestError(f"The network's {channels} channels do not divide by {heads} heads.")
        self.heads, self.new_order = heads, new_order
        self.norm = nn.GroupNorm(GROUPS, channels, EPS)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj_out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        with full_precision(x):
            flat = x.float().reshape(batch, channels, height * width)
            qkv = self.qkv(self.norm(flat))
            if self.new_order:
                q, k, v = qkv.reshape(batch, 3, self.heads, -1, height * width).unbind(1)
            else:
                q, k, v = qkv.reshape(batch, self.heads, 3, -1, height * width).unbind(2)
            h = F.scaled_dot_product_attention(q.mT, k.mT, v.mT).mT
            out = flat + self.proj_out(h.reshape(batch, channels, height * width))
        return out.reshape(x.shape).to(x.dtype)


class GuidedUNet(AnySizeNetwork):
    """F(x, t); the arguments are those of the public class, resolutions in pixels.

    Parameters
    ----------
    img_resolution
        Side of the training images.
    channel_mult
        Width of each level in units of ``model_channels``, finest first.
    attention_resolutions
        Map sizes (at training size) with attention; the middle always has it.
    num_heads, num_heads_upsample, num_head_channels
        Heads on the way down, on the way up (-1: the same), or channels per head instead (-1).
    """

    def __init__(
        self,
        img_resolution: int,
        in_channels: int,
        out_channels: int,
        model_channels: int,
        channel_mult: list[float],
        num_res_blocks: int,
        attention_resolutions: list[int],
        num_heads: int,
        num_heads_upsample: int,
        num_head_channels: int,
        conv_resample: bool,
        use_scale_shift_norm: bool,
        resblock_updown: bool,
        use_new_attention_order: bool,
    ) -> None:
        super().__init__()
        self.native_size, self.multiple = img_resolution, 2 ** (len(channel_mult) - 1)
        self.model_channels, embedding = model_channels, 4 * model_channels
        up_heads = num_heads if num_heads_upsample == -1 else num_heads_upsample

        def block(cin: int, cout: int, resample: str = "") -> ResBlock:
            return ResBlock(cin, cout, embedding, use_scale_shift_norm, resample)

        def attention(channels: int, heads: int) -> AttentionBlock:
            count = heads
            if num_head_channels != -1:
                if channels % num_head_channels:
                    raise RequestError(f"The network's {channels} channels do not divide by heads.")
                count = channels // num_head_channels
            return AttentionBlock(channels, count, use_new_attention_order)

        def move(channels: int, direction: str) -> nn.Module:
            if resblock_updown:
                return block(channels, channels, direction)
            return Resample(channels, direction == "up", conv_resample)

        self.time_embed = nn.Sequential(
            nn.Linear(model_channels, embedding), nn.SiLU(), nn.Linear(embedding, embedding)
        )
        widths = [int(factor * model_channels) for factor in channel_mult]
        width = widths[0]
        first = nn.Conv2d(in_channels, width, 3, padding=1)
        self.input_blocks = nn.ModuleList([nn.ModuleList([first])])
        skips = [width]
        for level, wide in enumerate(widths):
            attends = img_resolution >> level in attention_resolutions
            for _ in range(num_res_blocks):
                parts: list[nn.Module] = [block(width, wide)]
                width = wide
                if attends:
                    parts.append(attention(width, num_heads))
                self.input_blocks.append(nn.ModuleList(parts))
                skips.append(width)
            if level < len(widths) - 1:
                self.input_blocks.append(nn.ModuleList([move(width, "down")]))
                skips.append(width)
        self.middle_block = nn.ModuleList(
            [block(width, width), attention(width, num_heads), block(width, width)]
        )
        self.output_blocks = nn.ModuleList()
        for level, wide in reversed(list(enumerate(widths))):
            attends = img_resolution >> level in attention_resolutions
            for index in range(num_res_blocks + 1):
                parts = [block(width + skips.pop(), wide)]
                width = wide
                if attends:
                    parts.append(attention(width, up_heads))
                if level and index == num_res_blocks:
                    parts.append(move(width, "up"))
                self.output_blocks.append(nn.ModuleList(parts))
        self.out = nn.Sequential(
            nn.GroupNorm(GROUPS, width, EPS),
            nn.SiLU(),
            nn.Conv2d(width, out_channels, 3, padding=1),
        )

    def evaluate(self, x: Tensor, c_noise: Tensor) -> Tensor:
        with full_precision(x):
            steps = positional_embedding(c_noise, self.model_channels, endpoint=False)
            embedding = self.time_embed(steps)
        skips = []
        for parts in self.input_blocks:
            x = _through(parts, x, embedding)
            skips.append(x)
        x = _through(self.middle_block, x, embedding)
        for parts in self.output_blocks:
            x = _through(parts, torch.cat([x, skips.pop()], dim=1), embedding)
        return self.out(x)


def _through(parts: Any, x: Tensor, embedding: Tensor) -> Tensor:
    for part in parts:
        x = part(x, embedding) if isinstance(part, ResBlock) else part(x)
    return x
