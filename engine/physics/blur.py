"""Degraded images: convolution with a known kernel, computed by FFT, and down-sampling."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from engine.physics.operator import Operator
from engine.spec.errors import RequestError

BOUNDARIES = ("circular", "zero")

# `pseudo_inverse` trusts a frequency whose share of the signal is well above this.
DEFAULT_WIENER = 1e-2


def gaussian_kernel(sd: float) -> Tensor:
    """A normalised Gaussian of SD ``sd`` pixels, cut at four SDs."""
    radius = int(4 * sd + 0.5)
    offset = torch.arange(-radius, radius + 1, dtype=torch.float64)
    line = torch.exp(-0.5 * (offset / sd) ** 2)
    line = line / line.sum()
    return line[:, None] * line


def motion_kernel(length: float, angle_deg: float) -> Tensor:
    """Steady motion along a segment of ``length`` pixels, counter-clockwise from the rows.

    Points of the segment share their light between the four pixels around them.
    """
    radius = math.ceil(length / 2) + 1
    kernel = torch.zeros(2 * radius + 1, 2 * radius + 1, dtype=torch.float64)
    count = 16 * math.ceil(length)
    along = length * ((torch.arange(count, dtype=torch.float64) + 0.5) / count - 0.5)
    angle = math.radians(angle_deg)
    row, column = radius - along * math.sin(angle), radius + along * math.cos(angle)
    top, left = row.floor(), column.floor()
    for down in (0, 1):
        for right in (0, 1):
            share = (1 - (row - top - down).abs()) * (1 - (column - left - right).abs())
            place = (top.long() + down, left.long() + right)
            kernel.index_put_(place, share / count, accumulate=True)
    return kernel


class ConvolutionOperator(Operator):
    """What blur and down-sampling share: A A^T is itself a convolution where borders wrap.

    With its eigenvalues g the data step has a closed form, by the push-through identity:
    argmin ||A x - y||^2 + rho ||x - v||^2 = v + A^T (A A^T + rho)^-1 (y - A v).
    """

    is_scan = False
    _device = torch.device("cpu")

    @property
    def device(self) -> torch.device:
        return self._device

    def to(self, device: torch.device | str) -> ConvolutionOperator:
        self._device = torch.device(device)
        return self

    @abstractmethod
    def eigenvalues(self) -> Tensor | None:
        """Of A A^T, for ``rfft2`` of a measurement (float64, CPU); None if not circulant."""

    def proximal(
        self, y: Tensor, v: Tensor, rho: Tensor | float, weights: Tensor | None = None
    ) -> Tensor | None:
        eigenvalues = self.eigenvalues() if weights is None else None
        return None if eigenvalues is None else self._regularised(y, v, rho, eigenvalues)

    def _regularised(
        self, y: Tensor, v: Tensor, rho: Tensor | float, eigenvalues: Tensor
    ) -> Tensor:
        """At rho = 0 only what rounding has not swallowed is fitted; v keeps the rest."""
        gain = eigenvalues.to(v.dtype).to(v.device) + rho
        floor = torch.finfo(v.dtype).eps * float(eigenvalues.max())
        inverse = torch.where(gain > floor, 1 / gain.clamp_min(floor), torch.zeros_like(gain))
        residual = torch.fft.rfft2(y - self.forward(v)) * inverse
        return v + self.adjoint(torch.fft.irfft2(residual, s=y.shape[-2:]))

    def norm(self, iterations: int = 30) -> float:
        eigenvalues = self.eigenvalues()
        return super().norm(iterations) if eigenvalues is None else float(eigenvalues.max()) ** 0.5


class Blur(ConvolutionOperator):
    """y[i] = sum_m kernel[m] x[i + origin - m], every channel alike.

    Parameters
    ----------
    kernel : Tensor
        ``[rows, columns]``; a larger one than the image is allowed.
    shape : (H, W)
    channels : int
        1, or 2 for complex images: a real kernel treats both parts alike.
    boundary : 'circular' or 'zero'
        What lies beyond the border: the other side of the image, or nothing.
    origin : (row, column), optional
        Of the kernel; by default its middle.
    wiener : float
        Noise-to-signal ratio of ``pseudo_inverse``.
    about : dict, optional
        How the kernel was made, for ``describe``.
    """

    def __init__(
        self,
        kernel: Tensor,
        shape: tuple[int, int],
        channels: int = 1,
        boundary: str = "circular",
        origin: tuple[int, int] | None = None,
        wiener: float = DEFAULT_WIENER,
        about: dict[str, Any] | None = None,
    ) -> None:
        if boundary not in BOUNDARIES:
            raise RequestError(f"A boundary is circular or zero, not '{boundary}'.")
        if kernel.ndim != 2 or not bool(torch.isfinite(kernel).all()):
            raise RequestError("A blur kernel must be a plane of finite numbers.")
        self.kernel = kernel.detach().to("cpu", torch.float64)
        self.boundary, self.wiener, self.about = boundary, wiener, about or {}
        self.origin = origin or (kernel.shape[0] // 2, kernel.shape[1] // 2)
        self.image_shape = self.measurement_shape = (channels, *shape)
        # Without wrapping, room for the kernel keeps the two borders apart.
        room = (0, 0) if boundary == "circular" else (kernel.shape[0] - 1, kernel.shape[1] - 1)
        self._grid = (shape[0] + room[0], shape[1] + room[1])
        self._spectrum = torch.fft.rfft2(self._wrapped(self._grid))
        # Of A A^T as if the image wrapped around.
        self._eigenvalues = torch.fft.rfft2(self._wrapped(shape)).abs().square()
        self._on: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def _wrapped(self, grid: tuple[int, int]) -> Tensor:
        """The kernel on a periodic grid with its origin at index 0."""
        rows = (torch.arange(self.kernel.shape[0]) - self.origin[0]) % grid[0]
        columns = (torch.arange(self.kernel.shape[1]) - self.origin[1]) % grid[1]
        place = torch.meshgrid(rows, columns, indexing="ij")
        return torch.zeros(grid, dtype=torch.float64).index_put(place, self.kernel, accumulate=True)

    def _filter(self, x: Tensor, transpose: bool) -> Tensor:
        key = (x.dtype, x.device)
        if key not in self._on:
            self._on[key] = self._spectrum.to(x.dtype.to_complex()).to(x.device)
        spectrum = self._on[key].conj() if transpose else self._on[key]
        out = torch.fft.irfft2(torch.fft.rfft2(x, s=self._grid) * spectrum, s=self._grid)
        return out[..., : x.shape[-2], : x.shape[-1]]

    def forward(self, x: Tensor) -> Tensor:
        return self._filter(x, transpose=False)

    def adjoint(self, y: Tensor) -> Tensor:
        return self._filter(y, transpose=True)

    def eigenvalues(self) -> Tensor | None:
        return self._eigenvalues if self.boundary == "circular" else None

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """The Wiener filter around the mean grey value, or around the nothing beyond the border."""
        mean = y.mean((-2, -1), keepdim=True).expand_as(y)
        expected = mean if self.boundary == "circular" else torch.zeros_like(y)
        return self._regularised(y, expected, self.wiener, self._eigenvalues)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "blur",
            "image_shape": list(self.image_shape),
            "boundary": self.boundary,
            "kernel_shape": list(self.kernel.shape),
            "kernel_sha256": hashlib.sha256(self.kernel.numpy().tobytes()).hexdigest(),
            **self.about,
        }


# Relative to the largest eigenvalue, for the quick image: little noise is expected.
WIENER = 1e-3


def cubic_kernel(factor: int) -> tuple[Tensor, int]:
    """Keys' cubic (a = -1/2) stretched by ``factor``, as image programs shrink pictures.

    Also its origin: a small pixel lies at the centre of the ``factor`` pixels it stands for,
    which for even factors is between two of them.
    """
    first = -((3 * factor) // 2)  # offset of the leftmost pixel from the first of those pixels
    count = 4 * factor - factor % 2
    offset = torch.arange(count, dtype=torch.float64) + first - (factor - 1) / 2
    t = offset.abs() / factor
    near = 1.5 * t**3 - 2.5 * t**2 + 1
    far = -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
    line = torch.where(t < 1, near, torch.where(t < 2, far, torch.zeros_like(t)))
    return line / line.sum(), count - 1 + first


class SuperResolution(ConvolutionOperator):
    """A = S B: blur with the anti-alias kernel, keep pixels 0, f, 2f, ...

    With wrapping borders and a size that ``factor`` divides, A A^T is a convolution on the
    coarse grid and the data step has a closed form; otherwise conjugate gradients solve it.

    Parameters
    ----------
    factor : int
    shape : (H, W)
        Of the fine image.
    channels, boundary
        As for `Blur`.
    """

    def __init__(
        self,
        factor: int,
        shape: tuple[int, int],
        channels: int = 1,
        boundary: str = "circular",
    ) -> None:
        if factor < 1 or factor > min(shape):
            raise RequestError(f"An image of {shape[0]} x {shape[1]} cannot shrink {factor} times.")
        line, origin = cubic_kernel(factor)
        self.factor = factor
        self.blur = Blur(line[:, None] * line, shape, channels, boundary, (origin, origin))
        self.image_shape = self.blur.image_shape
        self.measurement_shape = (channels, -(-shape[0] // factor), -(-shape[1] // factor))
        self._eigenvalues: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        return self.blur.forward(x)[..., :: self.factor, :: self.factor]

    def adjoint(self, y: Tensor) -> Tensor:
        fine = y.new_zeros((len(y), *self.image_shape))
        fine[..., :: self.factor, :: self.factor] = y
        return self.blur.adjoint(fine)

    @property
    def _circulant(self) -> bool:
        divides = all(side % self.factor == 0 for side in self.image_shape[1:])
        return divides and self.blur.boundary == "circular"

    def eigenvalues(self) -> Tensor | None:
        if self._eigenvalues is None and self._circulant:
            point = torch.zeros(1, *self.measurement_shape, dtype=torch.float64)
            point[..., 0, 0] = 1
            response = self.forward(self.adjoint(point))[0, 0]
            self._eigenvalues = torch.fft.rfft2(response).real.clamp_min(0)
        return self._eigenvalues

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """The smallest change of a grey image that explains y; otherwise each pixel repeated."""
        eigenvalues = self.eigenvalues()
        if eigenvalues is None:
            height, width = self.image_shape[1:]
            tall = y.repeat_interleave(self.factor, -2)[..., :height, :]
            return tall.repeat_interleave(self.factor, -1)[..., :width]
        mean = y.mean((-2, -1), keepdim=True).expand(len(y), *self.image_shape)
        return self._regularised(y, mean, WIENER * float(eigenvalues.max()), eigenvalues)

    def describe(self) -> dict[str, Any]:
        return {
            **self.blur.describe(),
            "kind": "super-resolution",
            "factor": self.factor,
            "kernel": "cubic",
            "measurement_shape": list(self.measurement_shape),
        }
