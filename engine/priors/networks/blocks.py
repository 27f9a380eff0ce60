"""The pieces shared by the two U-Nets of Karras et al. 2022 (DDPM++ and ADM).

Written from the published formulas; parameters and buffers bear the names of the public
checkpoints, so that their state dicts load as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.priors.networks.compact import full_precision
from engine.spec.errors import RequestError


def group_norm(channels: int, eps: float) -> nn.GroupNorm:
    """At most 32 groups of at least 4 channels."""
    groups = min(32, channels // 4)
    if not groups or channels % groups:
        raise RequestError(f"The network's {channels} channels do not divide into norm groups.")
    return nn.GroupNorm(groups, channels, eps=eps)


def positional_embedding(c_noise: Tensor, width: int, endpoint: bool) -> Tensor:
    """[cos, sin] of c_noise times 10000^-(i / (width/2 - endpoint)), i < width/2."""
    half = width // 2
    index = torch.arange(half, device=c_noise.device, dtype=torch.float32)
    frequencies = 10000.0 ** (-index / (half - int(endpoint)))
    phase = c_noise.float()[:, None] * frequencies
    return torch.cat([phase.cos(), phase.sin()], dim=1)


def swap_halves(embedding: Tensor) -> Tensor:
    """[cos, sin] -> [sin, cos]."""
    first, second = embedding.chunk(2, dim=1)
    return torch.cat([second, first], dim=1)


class FourierEmbedding(nn.Module):
    """[cos, sin] of c_noise times random frequencies, which the checkpoint holds."""

    freqs: Tensor

    def __init__(self, width: int, scale: float = 16.0) -> None:
        super().__init__()
        self.register_buffer("freqs", torch.randn(width // 2) * scale)

    def forward(self, c_noise: Tensor) -> Tensor:
        phase = c_noise.float()[:, None] * (2 * math.pi * self.freqs)
        return torch.cat([phase.cos(), phase.sin()], dim=1)


class ResamplingConv(nn.Module):
    """A convolution after doubling or halving the resolution.

    Parameters
    ----------
    kernel
        Side of the kernel; 0 leaves the resampling alone.
    taps
        The separable low-pass filter of the resampling. (1, 1) repeats pixels on the way up
        and averages 2x2 pixels on the way down.
    filter_last
        Going down, convolve at the fine resolution and then resample. Away from the border it
        is the same; at the border the zero padding enters differently.
    """

    resample_filter: Tensor | None

    def __init__(
        self,
        cin: int,
        cout: int,
        kernel: int,
        up: bool = False,
        down: bool = False,
        taps: Sequence[int] = (1, 1),
        filter_last: bool = False,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.kernel = cin, cout, kernel
        self.up, self.down, self.taps, self.filter_last = up, down, tuple(taps), filter_last
        self.weight = self.bias = None
        if kernel:
            self.weight = nn.Parameter(torch.empty(cout, cin, kernel, kernel))
            self.bias = nn.Parameter(torch.zeros(cout))
            nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.register_buffer("resample_filter", filter_2d(taps) if up or down else None)

    def forward(self, x: Tensor) -> Tensor:
        low_pass = self.down and self.filter_last and self.weight is not None
        margin = (len(self.taps) - 1) // 2
        if self.up:
            x = self._enlarge(x)
        elif self.down and not low_pass:
            x = self._reduce(x, margin)
        if self.weight is not None:
            padding = self.kernel // 2 + (margin if low_pass else 0)
            x = F.conv2d(x, self.weight, None if low_pass else self.bias, padding=padding)
        if low_pass:
            assert self.bias is not None
            x = self._reduce(x, 0) + self.bias[:, None, None].to(x.dtype)
        return x

    def _enlarge(self, x: Tensor) -> Tensor:
        if self.taps == (1, 1):
            return F.interpolate(x, scale_factor=2, mode="nearest")
        channels, margin = x.shape[1], (len(self.taps) - 1) // 2
        kernel = self._depthwise(channels, 4, x)
        return F.conv_transpose2d(x, kernel, stride=2, padding=margin, groups=channels)

    def _reduce(self, x: Tensor, margin: int) -> Tensor:
        if self.taps == (1, 1):
            return F.avg_pool2d(x, 2)
        channels = x.shape[1]
        kernel = self._depthwise(channels, 1, x)
        return F.conv2d(x, kernel, stride=2, padding=margin, groups=channels)

    def _depthwise(self, channels: int, gain: float, x: Tensor) -> Tensor:
        assert self.resample_filter is not None
        return (self.resample_filter * gain).to(x.dtype).expand(channels, 1, -1, -1)


def filter_2d(taps: Sequence[int]) -> Tensor:
    """The outer product of the taps with themselves, of sum 1, as ``[1, 1, n, n]``."""
    line = torch.tensor(taps, dtype=torch.float32)
    return (line[:, None] * line / line.sum().square())[None, None]


class UNetBlock(nn.Module):
    """A residual block conditioned on the noise level, with optional self-attention.

    Parameters
    ----------
    heads
        Of the attention; 0 for none.
    adaptive
        The noise level scales and shifts the second norm (ADM) instead of being added before
        it (DDPM++).
    project
        Resampling skips have a 1x1 kernel even when the number of channels stays.
    skip_scale
        Factor after each residual sum.
    """

    def __init__(
        self,
        cin: int,
        cout: int,
        embedding: int,
        *,
        up: bool = False,
        down: bool = False,
        heads: int = 0,
        adaptive: bool,
        project: bool,
        skip_scale: float,
        eps: float,
        taps: Sequence[int] = (1, 1),
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = cin, cout
        self.heads, self.adaptive, self.skip_scale = heads, adaptive, skip_scale
        self.norm0 = group_norm(cin, eps)
        self.conv0 = ResamplingConv(cin, cout, 3, up, down, taps)
        self.affine = nn.Linear(embedding, cout * (2 if adaptive else 1))
        self.norm1 = group_norm(cout, eps)
        self.conv1 = ResamplingConv(cout, cout, 3)
        self.skip: ResamplingConv | None = None
        if cin != cout or up or down:
            kernel = 1 if project or cin != cout else 0
            self.skip = ResamplingConv(cin, cout, kernel, up, down, taps)
        if heads:
            self.norm2 = group_norm(cout, eps)
            self.qkv = ResamplingConv(cout, 3 * cout, 1)
            self.proj = ResamplingConv(cout, cout, 1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        h = self.conv0(F.silu(self.norm0(x)))
        with full_precision(x):
            affine = self.affine(embedding).to(h.dtype)[:, :, None, None]
        if self.adaptive:
            scale, shift = affine.chunk(2, dim=1)
            h = F.silu(torch.addcmul(shift, self.norm1(h), scale + 1))
        else:
            h = F.silu(self.norm1(h + affine))
        h = self.conv1(h)
        h = (h + (x if self.skip is None else self.skip(x))) * self.skip_scale
        if self.heads:
            h = (self.proj(self._attend(h)) + h) * self.skip_scale
        return h

    def _attend(self, h: Tensor) -> Tensor:
        """softmax(q^T k / sqrt(C/heads)) v over all pixels.

        The channels of ``qkv`` are ordered head by head, and q, k, v side by side within.
        """
        batch, channels, height, width = h.shape
        qkv = self.qkv(self.norm2(h)).float()
        qkv = qkv.reshape(batch, self.heads, channels // self.heads, 3, height * width)
        with full_precision(h):
            q, k, v = qkv.permute(3, 0, 1, 4, 2)
            out = F.scaled_dot_product_attention(q, k, v)
        return out.transpose(2, 3).reshape(batch, channels, height, width).to(h.dtype)
