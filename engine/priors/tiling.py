"""An image cut into overlapping tiles, treated tile by tile, and blended again.

For images so much larger than a network was trained on that it cannot take them whole (attention
over all pixels of a map grows with the square of their number). The windows that blend the tiles
add up to 1 at every pixel, so blending a network's answers is the same as blending denoised tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def tiled(function: Callable[[Tensor], Tensor], x: Tensor, tile: int, overlap: int) -> Tensor:
    """``function`` applied to overlapping tiles of ``[B, C, H, W]`` and blended.

    Parameters
    ----------
    function
        Maps a tile to one of the same height and width; channels may change.
    tile
        Side of the tiles; an image narrower than it is taken whole in that direction.
    overlap
        Neighbours share at least this many pixels.
    """
    rows, columns = (_starts(size, tile, overlap) for size in x.shape[-2:])
    total: Tensor | None = None
    weight = x.new_zeros(x.shape[-2:])
    for top in rows:
        for left in columns:
            part = x[..., top : top + tile, left : left + tile]
            out = function(part)
            height, width = part.shape[-2:]
            window = _window(height, overlap, x)[:, None] * _window(width, overlap, x)
            if total is None:
                total = out.new_zeros((*out.shape[:-2], *x.shape[-2:]))
            total[..., top : top + height, left : left + width] += out * window
            weight[top : top + height, left : left + width] += window
    assert total is not None
    return total / weight


def _starts(size: int, tile: int, overlap: int) -> list[int]:
    """Evenly spaced first pixels of the tiles; the last tile ends with the image."""
    if size <= tile:
        return [0]
    count = math.ceil((size - overlap) / (tile - overlap))
    return [round(i * (size - tile) / (count - 1)) for i in range(count)]


def _window(length: int, overlap: int, like: Tensor) -> Tensor:
    """1 inside, falling as a squared sine over ``overlap`` pixels; positive everywhere."""
    position = torch.arange(length, device=like.device, dtype=torch.float32) + 0.5
    distance = torch.minimum(position, length - position)
    return torch.sin(0.5 * math.pi * (distance / max(overlap, 1)).clamp(max=1)).square().to(like)
