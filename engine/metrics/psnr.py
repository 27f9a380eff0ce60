"""Peak signal-to-noise ratio."""

from __future__ import annotations

import torch
from torch import Tensor


def psnr_per_image(
    prediction: Tensor, reference: Tensor, data_range: Tensor | float, *, epsilon: float = 0.0
) -> Tensor:
    """-10 log10(mse / range^2 + epsilon) of each image of a batch, in dB.

    Identical images give infinity, unless ``epsilon`` (1e-8 in piq, a ceiling of 80 dB) caps it.
    ``data_range`` is one number or one per image.
    """
    mse = (prediction - reference).square().flatten(1).mean(dim=1)
    return _decibels(mse, data_range, epsilon)


def psnr_of_volume(prediction: Tensor, reference: Tensor, data_range: Tensor | float) -> Tensor:
    """One PSNR from the mean squared error over the whole batch."""
    return _decibels((prediction - reference).square().mean(), data_range, 0.0)


def _decibels(mse: Tensor, data_range: Tensor | float, epsilon: float) -> Tensor:
    peak = torch.as_tensor(data_range, dtype=mse.dtype, device=mse.device)
    return -10 * torch.log10(mse / peak.square() + epsilon)
