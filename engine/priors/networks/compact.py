"""A compact U-Net for computers without a GPU.

The image is first folded into channels (pixel unshuffle), so that the widest maps, whose cost on
a CPU is memory traffic rather than arithmetic, are small. Residual blocks are conditioned on the
noise level by a scale and a shift; attention at the coarsest levels sees the whole image.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.priors.networks.norm_silu import NormSilu
from engine.spec.errors import RequestError

CHANNELS_PER_GROUP = 8
CHANNELS_PER_HEAD = 32


# Far beyond anything useful, and small enough that a hostile file cannot exhaust the memory.
MOST_LEVELS, MOST_BLOCKS, MOST_CHANNELS = 8, 8, 1024


def check_kwargs(kwargs: dict[str, Any]) -> None:
    """Raise RequestError unless these build a network of sane size."""
    known = {"channels", "widths", "blocks", "attention", "unshuffle", "embedding"}
    given = set(kwargs) - {"align_phase"}  # optional
    if given != known:
        odd = sorted(given ^ known)[0]
        raise RequestError(f"The network's argument '{odd}' is unknown or missing.")
    widths = _whole(kwargs, "widths", 8, MOST_CHANNELS)
    blocks = _whole(kwargs, "blocks", 1, MOST_BLOCKS)
    attention = _whole(kwargs, "attention", 0, len(widths) - 1)
    for name, high in (("channels", 8), ("unshuffle", 8), ("embedding", MOST_CHANNELS)):
        _whole({name: [kwargs[name]]}, name, 1, high)
    if not 1 <= len(widths) <= MOST_LEVELS or len(blocks) != len(widths):
        raise RequestError(
            f"The network needs 1 to {MOST_LEVELS} widths and as many blocks, "
            f"not {len(widths)} and {len(blocks)}."
        )
    if kwargs.get("align_phase", False) not in (False, True) or (
        kwargs.get("align_phase") and kwargs["channels"] != 2
    ):
        raise RequestError("The network's 'align_phase' is on or off, and on for 2 channels only.")
    if any(width % CHANNELS_PER_GROUP for width in widths):
        raise RequestError(f"The network's widths must be multiples of {CHANNELS_PER_GROUP}.")
    if any(widths[level] % CHANNELS_PER_HEAD for level in attention):
        raise RequestError(
            f"The network's widths must be multiples of {CHANNELS_PER_HEAD} where it attends."
        )


def _whole(kwargs: dict[str, Any], name: str, low: int, high: int) -> list[int]:
    values = kwargs[name]
    if not isinstance(values, list | tuple) or not all(
        type(value) is int and low <= value <= high for value in values
    ):
        raise RequestError(f"The network's '{name}' must be whole numbers from {low} to {high}.")
    return list(values)


def zeroed(module: nn.Module) -> nn.Module:
    """The module with all its parameters at 0, so that a residual branch starts as nothing."""
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


def group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(channels // CHANNELS_PER_GROUP, channels, eps=1e-5)


class NoiseEmbedding(nn.Module):
    """c_noise -> a vector: sines and cosines of slowly rising frequency, then two layers.

    c_noise = ln(sigma)/4 stays within about [-1.6, 1.1]; the denoiser changes smoothly along
    it, so the highest frequency is kept low enough to interpolate between trained levels.
    """

    frequencies: Tensor

    def __init__(self, width: int, terms: int = 16) -> None:
        super().__init__()
        # a plain list: torch.logspace on the meta device imports all of torch's compiler
        octaves = [math.pi * 2.0 ** (5 * i / (terms - 1) - 2) for i in range(terms)]
        self.register_buffer("frequencies", torch.tensor(octaves), persistent=False)
        self.layer0 = nn.Linear(2 * terms, width)
        self.layer1 = nn.Linear(width, width)

    def forward(self, c_noise: Tensor) -> Tensor:
        phase = c_noise[:, None] * self.frequencies
        features = torch.cat([phase.cos(), phase.sin()], dim=1)
        return F.silu(self.layer1(F.silu(self.layer0(features))))


def full_precision(x: Tensor) -> torch.autocast:
    """Switches autocast off, for matrix products.

    They are a small part of the work, and the bfloat16 product of some CPU libraries trusts
    instructions that a virtual machine announces but does not allow, which ends the process.
    Convolutions go through oneDNN, which asks the operating system first.
    """
    return torch.autocast(x.device.type, enabled=False)


def silu(fresh: Tensor) -> Tensor:
    """F.silu of a map nobody else holds, in its own memory where no gradient needs it."""
    return F.silu(fresh, inplace=not torch.is_grad_enabled())


def trains_on_cpu(module: nn.Module, x: Tensor) -> bool:
    """Results are made in evaluation mode, and must not depend on how training is made fast."""
    return module.training and torch.is_grad_enabled() and x.device.type == "cpu"


def norm_silu(
    norm: nn.GroupNorm, x: Tensor, gain: Tensor | None = None, shift: Tensor | None = None
) -> Tensor:
    """silu(norm(x) * gain + shift) for training on a CPU, gain and shift ``[B, C]``."""
    if gain is None or shift is None:
        gain, shift = x.new_ones(x.shape[:2]).float(), x.new_zeros(x.shape[:2]).float()
    out: Tensor = NormSilu.apply(x, norm.weight, norm.bias, gain, shift, norm.num_groups, norm.eps)
    return out


class ResidualBlock(nn.Module):
    """x + conv(silu(norm(conv(silu(norm x))) * (1 + scale) + shift)), scale and shift by noise."""

    def __init__(self, channels: int, embedding: int) -> None:
        super().__init__()
        self.norm0 = group_norm(channels)
        self.conv0 = nn.Conv2d(channels, channels, 3, padding=1)
        self.affine = zeroed(nn.Linear(embedding, 2 * channels))
        self.norm1 = group_norm(channels)
        self.conv1 = zeroed(nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        if trains_on_cpu(self, x):
            h = self.conv0(norm_silu(self.norm0, x))
            with full_precision(x):
                scale, shift = self.affine(embedding).chunk(2, dim=1)
            return x + self.conv1(norm_silu(self.norm1, h, 1 + scale, shift))
        h = self.conv0(silu(self.norm0(x)))
        with full_precision(x):
            affine = self.affine(embedding).to(h.dtype)
        scale, shift = affine[:, :, None, None].chunk(2, dim=1)
        h = self.norm1(h)
        h = silu(torch.addcmul(shift, h, 1 + scale, out=None if torch.is_grad_enabled() else h))
        h = self.conv1(h)
        return x + h if torch.is_grad_enabled() else h.add_(x)


class Attention(nn.Module):
    """x + self-attention over all pixels of the map, with heads of 32 channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.heads = channels // CHANNELS_PER_HEAD
        self.norm = group_norm(channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = zeroed(nn.Conv2d(channels, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        qkv = self.qkv(self.norm(x)).permute(0, 2, 3, 1)
        qkv = qkv.reshape(batch, height * width, 3, self.heads, CHANNELS_PER_HEAD)
        with full_precision(x):
            q, k, v = qkv.permute(2, 0, 3, 1, 4).float()
            h = F.scaled_dot_product_attention(q, k, v)
        h = h.transpose(1, 2).reshape(batch, height, width, channels).permute(0, 3, 1, 2)
        return x + self.proj(h)


class Level(nn.Module):
    """The residual blocks of one resolution, each followed by attention if asked for."""

    def __init__(self, channels: int, embedding: int, blocks: int, attention: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ResidualBlock(channels, embedding) for _ in range(blocks))
        self.attention = nn.ModuleList(
            Attention(channels) for _ in range(blocks if attention else 0)
        )

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        for i, block in enumerate(self.blocks):
            x = block(x, embedding)
            if self.attention:
                x = self.attention[i](x)
        return x


class CompactUNet(nn.Module):
    """F(x, c_noise) for images of any size.

    Parameters
    ----------
    channels
        Of the image: 1 for CT, 2 (real, imaginary) for MR.
    widths
        Channels of each level, finest first; the resolution halves from one to the next.
        Multiples of 8, and of 32 at levels with attention.
    blocks
        Residual blocks per level, on the way down and again on the way up; the coarsest level
        has them once.
    attention
        Indices of the levels with self-attention.
    unshuffle
        The image is folded by this factor before the first level.
    embedding
        Width of the noise embedding.
    align_phase
        MR: turn the local phase to zero before the network and back after it (see
        ``local_phase``), so that it need not learn every phase anew.
    """

    def __init__(
        self,
        channels: int,
        widths: Sequence[int] = (64, 128, 192),
        blocks: Sequence[int] = (1, 1, 2),
        attention: Sequence[int] = (),
        unshuffle: int = 4,
        embedding: int = 128,
        align_phase: bool = False,
    ) -> None:
        super().__init__()
        self.channels, self.unshuffle, self.align_phase = channels, unshuffle, align_phase
        self.multiple = unshuffle * 2 ** (len(widths) - 1)
        folded = channels * unshuffle**2
        self.embed = NoiseEmbedding(embedding)
        self.stem = nn.Conv2d(folded, widths[0], 3, padding=1)
        levels = [
            Level(width, embedding, count, i in attention)
            for i, (width, count) in enumerate(zip(widths, blocks, strict=True))
        ]
        self.encoder = nn.ModuleList(levels)
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(nn.Conv2d(4 * fine, coarse, 1) for fine, coarse in pairs)
        self.up = nn.ModuleList(nn.Conv2d(coarse, 4 * fine, 1) for fine, coarse in pairs)
        self.fuse = nn.ModuleList(nn.Conv2d(2 * fine, fine, 1) for fine, _ in pairs)
        self.decoder = nn.ModuleList(
            Level(width, embedding, count, i in attention)
            for i, (width, count) in enumerate(zip(widths[:-1], blocks[:-1], strict=True))
        )
        self.norm = group_norm(widths[0])
        self.head = zeroed(nn.Conv2d(widths[0], folded, 3, padding=1))

    def forward(self, x: Tensor, c_noise: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        x = pad_to_multiple(x, self.multiple)
        if self.align_phase:
            cos, sin = local_phase(x)
            out = turned(self._aligned(turned(x, cos, -sin), c_noise), cos, sin)
        else:
            out = self._aligned(x, c_noise)
        return out[..., :height, :width]

    def _aligned(self, x: Tensor, c_noise: Tensor) -> Tensor:
        x = F.pixel_unshuffle(x, self.unshuffle)
        with full_precision(x):
            embedding = self.embed(c_noise.float())
        h = self.stem(x.contiguous(memory_format=torch.channels_last))
        skips: list[Tensor] = []
        for i, level in enumerate(self.encoder):
            h = level(h, embedding)
            if i < len(self.down):
                skips.append(h)
                h = fold_and_mix(h, self.down[i])
        for i in reversed(range(len(self.decoder))):
            h = F.pixel_shuffle(self.up[i](h), 2)
            h = self.fuse[i](torch.cat([h, skips[i]], dim=1))
            h = self.decoder[i](h, embedding)
        h = norm_silu(self.norm, h) if trains_on_cpu(self, h) else silu(self.norm(h))
        h = self.head(h)
        return F.pixel_shuffle(h, self.unshuffle)


def fold_and_mix(x: Tensor, mix: nn.Module) -> Tensor:
    """The 1 x 1 convolution ``mix`` of x folded 2 x 2 into channels: one of 2 x 2 with stride 2."""
    assert isinstance(mix, nn.Conv2d)
    return F.conv2d(x, mix.weight.reshape(mix.out_channels, -1, 2, 2), mix.bias, stride=2)


PHASE_BLOCK = 8


def local_phase(x: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of the phase around each pixel of a complex image, ``[B, 1, H, W]`` each.

    An MR image's phase is smooth: its mean over some 24 pixels is known even where each pixel
    is mostly noise.
    """
    block = (min(PHASE_BLOCK, x.shape[-2]), min(PHASE_BLOCK, x.shape[-1]))
    coarse = F.avg_pool2d(x, block, ceil_mode=True)
    coarse = F.avg_pool2d(coarse, 3, stride=1, padding=1, count_include_pad=False)
    mean = F.interpolate(coarse, size=x.shape[-2:], mode="bilinear", align_corners=False)
    unit = mean / mean.square().sum(1, keepdim=True).sqrt().clamp_min(1e-12)
    return unit[:, :1], unit[:, 1:]


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The complex image times cos + i sin."""
    real, imaginary = x[:, :1], x[:, 1:]
    return torch.cat([real * cos - imaginary * sin, imaginary * cos + real * sin], dim=1)


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:
    """Extend to the right and below by reflection (repetition where the image is too small)."""
    height, width = x.shape[-2:]
    below, right = -height % multiple, -width % multiple
    if not below and not right:
        return x
    mode = "reflect" if below < height and right < width else "replicate"
    return F.pad(x, (0, right, 0, below), mode=mode)
