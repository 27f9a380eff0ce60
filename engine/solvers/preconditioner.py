"""Preconditioners for the data step of a CT scan: one division in Fourier space each.

On the image's side: A^T A of a CT scan is nearly a convolution (with 1/r, weighted by the
directions seen). The circulant matrix closest to a Toeplitz one (T. Chan 1988) folds its kernel,
tapered linearly, onto the image grid. Limited-angle scans leave a wedge of frequencies unseen; a
floor keeps the preconditioner from amplifying them.

On the measurement's side: A A^T couples a ray to itself, in proportion to its length, and to the
rays that it crosses. Two views an angle t apart see the same of a body that is D bins wide up to
the frequency 1 / (D t), so that A A^T is the larger the further a frequency lies below it. Its
approximate inverse is a ramp filter which knows how many views there are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.physics.cg import LinearMap
from engine.physics.operator import Operator
from engine.spec.errors import RequestError

SHORTEST_RAY = 1e-3  # of the longest: rays that hardly touch the image count as this


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
        raise RequestError("⟦preconditioner⟧ filtered works on real images (CT) only.")
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


class RayFilter:
    """An approximate inverse of W^1/2 A A^T W^1/2 + rho, view by view.

    ``own`` is about the diagonal of A A^T: with linear interpolation the squared weights of a
    ray add up to its length times the pixel size, within a third. ``overlap`` is how many times
    as large a smooth sinogram finds A A^T, frequency by frequency.
    """

    def __init__(self, operator: Operator, weights: Tensor | None) -> None:
        geometry = operator.geometry
        if geometry is None:
            raise RequestError("⟦preconditioner⟧ ramp works on CT scans only.")
        image = torch.ones((1, *operator.image_shape), device=operator.device)
        own = geometry.pixel_mm * operator.forward(image)
        own = own if weights is None else own * weights
        self.own = own.maximum(SHORTEST_RAY * own.amax((1, 2, 3), keepdim=True))
        bins, angles = geometry.detectors, geometry.angles_rad
        step = (max(angles) - min(angles)) / max(len(angles) - 1, 1)
        frequency = torch.fft.rfftfreq(2 * bins, device=own.device, dtype=own.dtype)
        # A body fills about half of the detector; below one period there is nothing to tell apart.
        self.overlap = 2 / (bins * step * (frequency + 1 / bins)) if step else 0 * frequency

    def solve(self, rho: Tensor | float) -> LinearMap:
        scale, bins = (self.own + rho).rsqrt(), self.own.shape[-1]
        mean = self.own.mean((1, 2, 3), keepdim=True)
        gain = (mean + rho) / (mean * (1 + self.overlap) + rho)

        def solve(r: Tensor) -> Tensor:
            # twice as long, so that one end of the detector does not reach the other
            spectrum = torch.fft.rfft(scale * r, n=2 * bins) * gain
            return scale * torch.fft.irfft(spectrum, n=2 * bins)[..., :bins]

        return solve
