"""Peak signal-to-noise ratio."""

from __future__ import annotations

import torch
from torch import Tensor


def psnr_per_image(
    prediction: Tensor,
    reference: Tensor,
    data_range: Tensor | float,
    *,
    epsilon: float = 0.0,
    where: Tensor | None = None,
) -> Tensor:
    """-10 log10(mse / range^2 + epsilon) of each image of a batch, in dB.

    Identical images give infinity, unless ``epsilon`` (1e-8 in piq, a ceiling of 80 dB) caps it.
    ``data_range`` is one number or one per image; ``where`` are the pixels that count.
    """
    mse = mean_where((prediction - reference).square(), where)
    return _decibels(mse, data_range, epsilon)


def psnr_of_volume(
    prediction: Tensor,
    reference: Tensor,
    data_range: Tensor | float,
    *,
    where: Tensor | None = None,
) -> Tensor:
    """One PSNR from the mean squared error over the whole batch."""
    squares = (prediction - reference).square()
    return _decibels((squares if where is None else squares[where]).mean(), data_range, 0.0)


def mean_where(values: Tensor, where: Tensor | None) -> Tensor:
    """The mean of each image of a batch, over the pixels that count."""
    if where is None:
        return values.flatten(1).mean(dim=1)
    weight = where.to(values)
    return (values * weight).flatten(1).sum(dim=1) / weight.flatten(1).sum(dim=1)


def _decibels(mse: Tensor, data_range: Tensor | float, epsilon: float) -> Tensor:
    peak = torch.as_tensor(data_range, dtype=mse.dtype, device=mse.device)
    return -10 * torch.log10(mse / peak.square() + epsilon)
