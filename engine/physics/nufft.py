"""The Fourier transform of an image at any positions of k-space: Kaiser-Bessel gridding.

The image is divided by the transform of an interpolation kernel, padded to twice its size and
Fourier transformed; each sample is a weighted mean of the 7 x 7 grid points around it (Fessler and
Sutton, IEEE Trans. Signal Process. 51 (2003) 560; kernel shape after Beatty et al., IEEE Trans.
Med. Imaging 24 (2005) 799). In float32 the error is one millionth of the result. The weights are a
sparse matrix, so that the adjoint is its exact transpose and every repeat gives the same bits.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.ct import sparse_tensor
from engine.physics.system_matrix import CSR, available_memory_bytes
from engine.spec.errors import RequestError

OVERSAMPLING = 2
WIDTH = 7  # grid points of the kernel along an axis
SHAPE = math.pi * math.sqrt((WIDTH / OVERSAMPLING * (OVERSAMPLING - 0.5)) ** 2 - 0.8)
MAX_SAMPLES = 1 << 21
BYTES_PER_WEIGHT = 32  # while the matrix and its transpose are made
DENSITY_STEPS = 20


class Nufft:
    """y(k) = (H W)^-1/2 sum_n x(n) exp(-2 pi i k . n / N), n counted from N // 2.

    Parameters
    ----------
    size : (H, W)
        Of the image.
    positions : ``[2, M]``
        In cycles per field of view, along rows and columns: whole numbers are the samples of
        `engine.physics.fourier.centred_fft2`.
    """

    def __init__(self, size: tuple[int, int], positions: NDArray[np.float64]) -> None:
        count = positions.shape[1]
        needed = count * WIDTH * WIDTH * BYTES_PER_WEIGHT
        if count > MAX_SAMPLES or needed > available_memory_bytes() // 2:
            raise RequestError(
                f"{count} samples of k-space need {needed / 1e9:.1f} GB of memory: "
                "reconstruct fewer spokes (⟦acceleration⟧)."
            )
        self.size = size
        self.grid = (OVERSAMPLING * size[0], OVERSAMPLING * size[1])
        matrix = _weights(positions, size, self.grid)
        self._gather = sparse_tensor(matrix)
        self._spread = sparse_tensor(matrix.transposed())
        outer = np.outer(*(_deapodisation(n, g) for n, g in zip(size, self.grid, strict=True)))
        self._flatten = torch.from_numpy((outer / math.sqrt(math.prod(size))).astype(np.float32))

    def to(self, device: torch.device | str) -> Nufft:
        # Sparse products exist on these two; elsewhere the samples travel.
        home = device if torch.device(device).type in ("cpu", "cuda") else "cpu"
        self._gather, self._spread = self._gather.to(home), self._spread.to(home)
        self._flatten = self._flatten.to(device)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Complex images ``[B, H, W]`` to samples ``[B, M]``."""
        spectrum = torch.fft.fft2(self._pad(x * self._flatten))
        return _multiply(self._gather, spectrum.flatten(1))

    def adjoint(self, y: Tensor) -> Tensor:
        """Samples ``[B, M]`` to images: the conjugate transpose of `forward`."""
        spectrum = _multiply(self._spread, y).unflatten(1, self.grid)
        return self._crop(torch.fft.ifft2(spectrum, norm="forward")) * self._flatten

    def cell_areas(self) -> Tensor:
        """The part of k-space that each sample stands for, ``[M]``, in cells of the Fourier grid.

        Pipe and Menon, Magn. Reson. Med. 41 (1999) 179: weights whose convolution with a kernel
        is 1 at every sample. Ours is the gridding kernel with itself, whose integral is 1/4.
        """
        w = torch.ones(self._gather.shape[0], device=self._gather.device)
        for _ in range(DENSITY_STEPS):
            w = w / (self._gather @ (self._spread @ w)).clamp_min(torch.finfo(w.dtype).tiny)
        return (w / 4).to(self._flatten.device)

    def _pad(self, x: Tensor) -> Tensor:
        """Onto the larger grid, the image's centre at its first corner."""
        (h, w), (a, b) = self.size, (n // 2 for n in self.size)
        padded = x.new_zeros((len(x), *self.grid))
        padded[:, : h - a, : w - b] = x[:, a:, b:]
        padded[:, : h - a, -b:] = x[:, a:, :b]
        padded[:, -a:, : w - b] = x[:, :a, b:]
        padded[:, -a:, -b:] = x[:, :a, :b]
        return padded

    def _crop(self, padded: Tensor) -> Tensor:
        (h, w), (a, b) = self.size, (n // 2 for n in self.size)
        rows = torch.cat((padded[:, -a:], padded[:, : h - a]), dim=1)
        return torch.cat((rows[..., -b:], rows[..., : w - b]), dim=2)


def toeplitz_spectrum(
    size: tuple[int, int], positions: NDArray[np.float64], counted: NDArray[np.bool_]
) -> Tensor:
    """A^H A of the `Nufft` with these samples as a filter on a grid of twice the size.

    A^H A is a convolution: t(n - n') = (H W)^-1 sum_k exp(2 pi i k . (n - n') / N). Offsets of
    -N, which two pixels never have, are set to zero; the filter is then real.
    """
    height, width = size
    double = Nufft((2 * height, 2 * width), 2 * positions[:, counted])
    ones = torch.ones((1, int(counted.sum())), dtype=torch.complex64)
    kernel = double.adjoint(ones)[0] * (2 / math.sqrt(height * width))
    kernel[0], kernel[:, 0] = 0, 0
    return torch.fft.fft2(torch.fft.ifftshift(kernel)).real


def density(spectrum: Tensor) -> Tensor:
    """Samples per cell of the Fourier grid: the circulant matrix nearest to a Toeplitz one.

    ``spectrum`` is that of `toeplitz_spectrum`; its kernel is folded onto the image, each offset
    with the share of pixels that have it (T. Chan, 1988).
    """
    kernel = torch.fft.ifft2(spectrum)
    for axis in (0, 1):
        half = kernel.shape[axis] // 2
        offset = torch.arange(2 * half, device=kernel.device)
        share = (1 - offset / half).abs()
        kernel = kernel * (share[:, None] if axis == 0 else share)
        first, second = kernel.split(half, dim=axis)
        kernel = first + second
    return torch.fft.fft2(kernel).real


def _weights(positions: NDArray[np.float64], size: tuple[int, int], grid: tuple[int, int]) -> CSR:
    """The kernel between each sample (row) and the grid points around it, as a sparse matrix."""
    indices, weights = [], []
    for k, n, g in zip(positions, size, grid, strict=True):
        at = k * (g / n)
        points = np.ceil(at - WIDTH / 2)[:, None] + np.arange(WIDTH)
        weights.append(_kernel(points - at[:, None]).astype(np.float32))
        indices.append((points % g).astype(np.int32))
    count = positions.shape[1]
    col = indices[0][:, :, None] * np.int32(grid[1]) + indices[1][:, None, :]
    value = weights[0][:, :, None] * weights[1][:, None, :]
    crow = np.arange(count + 1, dtype=np.int32) * (WIDTH * WIDTH)
    return CSR((count, math.prod(grid)), crow, col.ravel(), value.ravel())


def _kernel(offset: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kaiser and Bessel's window over `WIDTH` grid points, with an integral of 1."""
    inside = np.clip(1 - (2 * offset / WIDTH) ** 2, 0, None)
    return np.i0(SHAPE * np.sqrt(inside)) * (inside > 0) * (SHAPE / (WIDTH * np.sinh(SHAPE)))


def _deapodisation(n: int, grid: int) -> NDArray[np.float64]:
    """1 / the kernel's transform at the pixels; the root is real as long as OVERSAMPLING > 1."""
    x = (np.arange(n) - n // 2) / grid
    root = np.sqrt(SHAPE**2 - (np.pi * WIDTH * x) ** 2)
    return root * np.sinh(SHAPE) / (SHAPE * np.sinh(root))


def _multiply(matrix: Tensor, z: Tensor) -> Tensor:
    """matrix @ z for complex rows ``[B, n]``: one pass over the matrix serves them all."""
    pairs = torch.view_as_real(z).to(matrix).movedim(1, 0).flatten(1)
    product = (matrix @ pairs).unflatten(1, (len(z), 2)).movedim(1, 0)
    return torch.view_as_complex(product.contiguous()).to(z.device)
