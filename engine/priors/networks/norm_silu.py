"""Group norm, scale and shift, and SiLU as one step of training on a CPU.

There a training step outside its convolutions is memory traffic. Only the input is kept for the
backward pass, which recomputes the rest in float32, a part of the batch at a time, while it is
in the cache. Gradients are those of the separate operations, with fewer roundings in bfloat16.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

NUMBERS_AT_ONCE = 2**19


class NormSilu(torch.autograd.Function):
    """silu(norm(x) * gain + shift) for ``[B, C, H, W]``, gain and shift ``[B, C]``, float32.

    norm is a group norm with ``weight`` and ``bias`` over ``groups`` groups.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        gain: Tensor,
        shift: Tensor,
        groups: int,
        eps: float,
    ) -> Tensor:
        batch, channels, height, width = x.shape
        _, mean, rstd = torch.ops.aten.native_group_norm(
            x, weight, bias, batch, channels, height * width, groups, eps
        )
        mean, rstd = (per_channel(t.float(), channels) for t in (mean, rstd))
        ctx.save_for_backward(x, weight, bias, gain, shift, mean, rstd)
        ctx.groups = groups
        slope, offset = line(weight, bias, gain, shift, mean, rstd)
        out, pixels = new_pixels(x), as_pixels(x)
        for part in parts(x):
            u = torch.addcmul(offset[part], pixels[part].float(), slope[part])
            out[part] = F.silu(u, inplace=True)
        return as_image(out, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, gain, shift, mean, rstd = ctx.saved_tensors
        channels, groups = x.shape[1], ctx.groups
        count = x[0].numel() // groups
        slope, offset = line(weight, bias, gain, shift, mean, rstd)
        out, pixels, arriving = new_pixels(x), as_pixels(x), as_pixels(gradient)
        sums, sums_with_norm = torch.empty_like(mean), torch.empty_like(mean)
        for part in parts(x):
            values = pixels[part].float()
            u = torch.addcmul(offset[part], values, slope[part])
            du = torch.ops.aten.silu_backward(arriving[part].float(), u)
            total = du.sum(1, keepdim=True)
            with_x = torch.mul(du, values, out=u).sum(1, keepdim=True)
            with_norm = rstd[part] * (with_x - mean[part] * total)
            sums[part], sums_with_norm[part] = total, with_norm
            # d norm / dx: the group's mean and its component along the normalised x are lost
            scaled = weight * gain[part, None]
            along = per_channel(in_groups(scaled * with_norm, groups) / count, channels)
            level = per_channel(in_groups(scaled * total, groups) / count, channels)
            times_x = -(rstd[part] ** 2) * along
            constant = -rstd[part] * level - times_x * mean[part]
            out[part] = du.mul_(slope[part]).addcmul_(values, times_x).add_(constant)
        total, with_norm = sums[:, 0], sums_with_norm[:, 0]
        return (
            as_image(out, x),
            (gain * with_norm).sum(0),
            (gain * total).sum(0),
            weight * with_norm + bias * total,
            total,
            None,
            None,
        )


def line(*statistics: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and offset ``[B, 1, C]`` of x -> norm(x) * gain + shift in each channel."""
    weight, bias, gain, shift, mean, rstd = statistics
    slope = rstd * weight * gain[:, None]
    return slope, bias * gain[:, None] + shift[:, None] - mean * slope


def in_groups(values: Tensor, groups: int) -> Tensor:
    """Sums over the channels of each group: ``[B, 1, C]`` -> ``[B, groups]``."""
    return values.reshape(len(values), groups, -1).sum(2)


def per_channel(values: Tensor, channels: int) -> Tensor:
    """``[B, groups]`` -> ``[B, 1, channels]``."""
    return values.repeat_interleave(channels // values.shape[1], 1)[:, None]


def as_pixels(x: Tensor) -> Tensor:
    """``[B, pixels, C]``: no copy where x is channels-last."""
    return x.permute(0, 2, 3, 1).reshape(len(x), -1, x.shape[1])


def new_pixels(x: Tensor) -> Tensor:
    return x.new_empty(len(x), x.shape[2] * x.shape[3], x.shape[1])


def as_image(pixels: Tensor, like: Tensor) -> Tensor:
    batch, channels, height, width = like.shape
    return pixels.view(batch, height, width, channels).permute(0, 3, 1, 2)


def parts(x: Tensor) -> list[slice]:
    """The batch in parts of about ``NUMBERS_AT_ONCE`` numbers, of one image at least."""
    count = max(1, NUMBERS_AT_ONCE // x[0].numel())
    return [slice(start, start + count) for start in range(0, len(x), count)]
