"""The centred, orthonormal two-dimensional Fourier transform of MRI.

The zero frequency and the image origin both sit at index N // 2 (fastMRI's convention), for
odd and even sizes alike. Orthonormal scaling makes the transform unitary, so its adjoint is
its inverse.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.spec.errors import RequestError

_AXES = (-2, -1)


def to_complex(x: Tensor) -> Tensor:
    """``[B, 2C, H, W]`` real (real, imaginary, real, ...) to ``[B, C, H, W]`` complex."""
    if x.shape[1] % 2:
        raise RequestError(f"A complex image needs an even number of channels, not {x.shape[1]}.")
    return torch.complex(x[:, 0::2], x[:, 1::2])


def to_channels(z: Tensor) -> Tensor:
    """``[B, C, H, W]`` complex to ``[B, 2C, H, W]`` real, component c at 2c and 2c + 1."""
    return torch.stack((z.real, z.imag), dim=2).flatten(1, 2)


def centred_fft2(z: Tensor) -> Tensor:
    """Centred orthonormal FFT of a complex tensor over its last two axes."""
    spectrum = torch.fft.fft2(torch.fft.ifftshift(z, dim=_AXES), norm="ortho")
    return torch.fft.fftshift(spectrum, dim=_AXES)


def centred_ifft2(z: Tensor) -> Tensor:
    """The inverse, and adjoint, of `centred_fft2`."""
    image = torch.fft.ifft2(torch.fft.ifftshift(z, dim=_AXES), norm="ortho")
    return torch.fft.fftshift(image, dim=_AXES)


def fft2c(x: Tensor) -> Tensor:
    """Image to k-space, both as pairs of real channels."""
    return to_channels(centred_fft2(to_complex(x)))


def ifft2c(k: Tensor) -> Tensor:
    """K-space to image, both as pairs of real channels; inverse and adjoint of `fft2c`."""
    return to_channels(centred_ifft2(to_complex(k)))
