"""A circulant preconditioner for the data step: one division in Fourier space.

A^T A of a CT scan is nearly a convolution (with 1/r, weighted by the directions seen). The
circulant matrix closest to a Toeplitz one (T. Chan 1988) folds its kernel, tapered linearly,
onto the image grid. Limited-angle scans leave a wedge of frequencies unseen; a floor keeps
the preconditioner from amplifying them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.errors import RequestError
from engine.solvers.cg import LinearMap


def toeplitz_kernel(normal: LinearMap, like: Tensor) -> Tensor:
    """The response of ``normal`` at every offset: ``[2H, 2W]``, offset zero at the origin.

    Two corners of the image see all offsets of one half plane; the other half is its mirror.
    """
    height, width = like.shape[-2:]
    points = like.new_zeros((2, 1, height, width))
    points[0, 0, 0, 0] = points[1, 0, 0, -1] = 1
    right_of, left_of = torch.cat([normal(points[:1]), normal(points[1:])])[:, 0]
    kernel = like.new_zeros((2 * height, 2 * width))
    kernel[:height, width + 1 :] = left_of[:, :-1]
    kernel[:height, :width] = right_of
    kernel[height + 1 :, 1:] = kernel[1:height, 1:].flip((0, 1))
    kernel[height + 1 :, 0] = kernel[1:height, 0].flip(0)
    return kernel


def circulant_eigenvalues(normal: LinearMap, like: Tensor, floor: float) -> Tensor:
    """Eigenvalues (for ``rfft2``) of the circulant matrix closest to ``normal``."""
    if like.shape[1] != 1:
        raise RequestError("--preconditioner filtered works on real images (CT) only.")
    height, width = like.shape[-2:]
    kernel = toeplitz_kernel(normal, like)
    for axis, length in enumerate((height, width)):
        offset = torch.arange(2 * length, device=like.device, dtype=like.dtype)
        taper = (1 - offset / length).abs()  # 1 at offset 0, 0 at the far edge
        kernel = kernel * (taper[:, None] if axis == 0 else taper)
        first, second = kernel.split(length, dim=axis)
        kernel = first + second
    spectrum = torch.fft.rfft2(kernel).real
    return spectrum.clamp_min(floor * float(spectrum.max()))


def circulant_solve(eigenvalues: Tensor, rho: Tensor | float) -> LinearMap:
    """r -> (C + rho)^-1 r."""
    inverse = 1 / (eigenvalues + rho)

    def solve(r: Tensor) -> Tensor:
        return torch.fft.irfft2(torch.fft.rfft2(r) * inverse, s=r.shape[-2:])

    return solve
