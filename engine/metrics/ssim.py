"""Structural similarity with the windows that published evaluations use.

Wang, Bovik, Sheikh, Simoncelli, IEEE Trans. Image Processing 13 (2004). The local means are
separable, so each is two small matrix products with a banded matrix; on a 256 x 256 image that
is several times faster than a convolution and runs in every iteration.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.spec.errors import RequestError

K1, K2 = 0.01, 0.03
GAUSSIAN_SIZE, GAUSSIAN_SIGMA = 11, 1.5
UNIFORM_SIZE = 7

Window = Literal["gaussian", "uniform"]


def ssim_per_image(
    prediction: Tensor,
    reference: Tensor,
    data_range: Tensor | float,
    *,
    window: Window = "gaussian",
    reflect: bool = False,
    sample_covariance: bool = False,
    where: Tensor | None = None,
) -> Tensor:
    """Mean SSIM of each image of a batch ``[B, 1, H, W]``.

    Parameters
    ----------
    data_range : float or Tensor ``[B]``
    window : {'gaussian', 'uniform'}
        Gaussian 11 x 11 of SD 1.5, or uniform 7 x 7.
    reflect : bool
        Mirror the border and average over the whole image (torchmetrics), instead of averaging
        only where the window fits (piq, scikit-image).
    sample_covariance : bool
        Divide covariances by n - 1 (scikit-image's default).
    where : Tensor, optional
        Boolean ``[B, 1, H, W]``: the mean over windows centred there alone.
    """
    peak = torch.as_tensor(data_range, dtype=reference.dtype, device=reference.device)
    x, y = (image / peak.reshape(-1, 1, 1, 1) for image in (prediction, reference))
    height, width = x.shape[-2:]
    rows, columns = (
        _averaging(window, n, reflect, x.dtype, str(x.device)) for n in (height, width)
    )
    mean_x, mean_y, mean_xx, mean_yy, mean_xy = (
        rows @ torch.stack((x, y, x * x, y * y, x * y)) @ columns.T
    )
    n = UNIFORM_SIZE**2
    correction = n / (n - 1) if sample_covariance else 1.0
    # Rounding can take the variance of a flat patch just below zero.
    var_x = correction * (mean_xx - mean_x * mean_x).clamp_min(0)
    var_y = correction * (mean_yy - mean_y * mean_y).clamp_min(0)
    cov = correction * (mean_xy - mean_x * mean_y)
    c1, c2 = K1**2, K2**2
    luminance = (2 * mean_x * mean_y + c1) / (mean_x * mean_x + mean_y * mean_y + c1)
    structure = (2 * cov + c2) / (var_x + var_y + c2)
    if where is not None and not reflect:
        half = (height - rows.shape[0]) // 2
        where = where[..., half : height - half, half : width - half]
    return mean_where(luminance * structure, where)


def pool_to_256(image: Tensor) -> Tensor:
    """Average over blocks of round(min(H, W) / 256), as piq does before its SSIM."""
    factor = max(1, round(min(image.shape[-2:]) / 256))
    return F.avg_pool2d(image, factor) if factor > 1 else image


@lru_cache(maxsize=32)
def _averaging(window: Window, n: int, reflect: bool, dtype: torch.dtype, device: str) -> Tensor:
    """The one-dimensional local mean as a matrix, with the mirrored border folded in."""
    kernel = _kernel(window)
    size = len(kernel)
    half = size // 2
    if n < (half + 1 if reflect else size):
        raise RequestError(f"SSIM needs images wider than its {size}-pixel window, not {n} pixels.")
    first = -half if reflect else 0
    count = n if reflect else n - size + 1
    column = first + torch.arange(count)[:, None] + torch.arange(size)[None, :]
    column = column.abs()
    column = torch.where(column > n - 1, 2 * (n - 1) - column, column)
    matrix = torch.zeros(count, n, dtype=torch.float64)
    matrix.scatter_add_(1, column, kernel.expand(count, size))
    return matrix.to(device=device, dtype=dtype)


def _kernel(window: Window) -> Tensor:
    if window == "uniform":
        return torch.full((UNIFORM_SIZE,), 1 / UNIFORM_SIZE, dtype=torch.float64)
    distance = torch.arange(GAUSSIAN_SIZE, dtype=torch.float64) - GAUSSIAN_SIZE // 2
    weight = torch.exp(-distance.square() / (2 * GAUSSIAN_SIGMA**2))
    return weight / weight.sum()


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
