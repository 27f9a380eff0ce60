"""Down-sampled images: an anti-alias kernel, then every f-th pixel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from engine.physics.blur import Blur, ConvolutionOperator
from engine.spec.errors import RequestError

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
