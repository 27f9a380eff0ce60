"""Cartesian MRI: one coil, or many with known sensitivities."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from engine.physics.fourier import (
    centred_fft2,
    centred_ifft2,
    fft2c,
    ifft2c,
    to_channels,
    to_complex,
)
from engine.physics.masks import SamplingMask
from engine.physics.operator import Operator
from engine.spec.errors import RequestError

# sum |S|^2 below this share of its maximum is treated as no coil seeing the pixel at all.
SENSITIVITY_FLOOR = 1e-3


class _CartesianMRI(Operator):
    """What both operators share: the mask and its bookkeeping."""

    kind: str
    part, part_axis = "line", -1
    inverse_is_stable = True

    def __init__(self, mask: SamplingMask, shape: tuple[int, int]) -> None:
        height, width = shape
        if mask.width != width or (mask.sampled.ndim == 2 and mask.sampled.shape[0] != height):
            raise RequestError(
                f"The sampling mask {mask.sampled.shape} does not fit an image of "
                f"{height} x {width}."
            )
        self.mask = mask
        self.image_shape = (2, height, width)
        self._sampled = mask.to_tensor()

    @property
    def device(self) -> torch.device:
        return self._sampled.device

    def sampled(self) -> Tensor:
        return self._sampled

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "image_shape": list(self.image_shape),
            "measurement_shape": list(self.measurement_shape),
            "mask": self.mask.to_dict(),
            "true_acceleration": self.mask.true_acceleration,
        }


class SingleCoilMRI(_CartesianMRI):
    """A = M F: the sampled lines of the centred orthonormal Fourier transform.

    Parameters
    ----------
    mask : SamplingMask
    shape : (H, W)
        Image size; W is the phase-encode axis.
    """

    kind = "mri-single-coil"
    is_projection = True

    def __init__(self, mask: SamplingMask, shape: tuple[int, int]) -> None:
        super().__init__(mask, shape)
        self.measurement_shape = self.image_shape

    def to(self, device: torch.device | str) -> SingleCoilMRI:
        self._sampled = self._sampled.to(device)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return fft2c(x) * self._sampled

    def adjoint(self, y: Tensor) -> Tensor:
        return ifft2c(y * self._sampled)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """The zero-filled image; here the Moore-Penrose inverse exactly, since A A^H = M."""
        return self.adjoint(y)

    def proximal(
        self, y: Tensor, v: Tensor, rho: Tensor | float, weights: Tensor | None = None
    ) -> Tensor:
        """argmin_x ||A x - y||^2_W + rho ||x - v||^2, one division per k-space sample.

        F is unitary, so the problem is diagonal in k-space. At rho = 0 the measured samples
        replace those of v, the nearest point to v that fits the data.
        """
        k = fft2c(v)
        rho = _per_sample(rho, k)
        w = torch.ones((), dtype=k.dtype, device=k.device) if weights is None else weights
        denominator = w + rho
        # Without weight and without penalty a sample says nothing: v keeps its value.
        measured = self._sampled & (denominator > 0)
        safe = torch.where(denominator > 0, denominator, torch.ones_like(denominator))
        return ifft2c(torch.where(measured, (w * y + rho * k) / safe, k))

    def norm(self, iterations: int = 30) -> float:
        """Exactly 1: a unitary map followed by a projection that keeps something."""
        return 1.0


class MultiCoilMRI(_CartesianMRI):
    """A = M F S: the image seen by each coil through its sensitivity.

    Parameters
    ----------
    mask : SamplingMask
    maps : complex Tensor
        Sensitivities ``[coils, H, W]``, or ``[B, coils, H, W]`` when each slice has its own.

    Notes
    -----
    Coil c of the measurement lies at channels 2c (real) and 2c + 1 (imaginary).
    """

    kind = "mri-multi-coil"

    def __init__(self, mask: SamplingMask, maps: Tensor) -> None:
        if maps.ndim not in (3, 4) or not maps.is_complex():
            raise RequestError(
                "Sensitivity maps must be complex [coils, H, W] or [B, coils, H, W], "
                f"not {maps.dtype} {list(maps.shape)}."
            )
        if not bool(torch.isfinite(maps).all()):
            raise RequestError("The sensitivity maps hold NaN or infinite values.")
        if not bool(maps.abs().amax() > 0):
            raise RequestError("The sensitivity maps are zero everywhere.")
        super().__init__(mask, (maps.shape[-2], maps.shape[-1]))
        self.coils = int(maps.shape[-3])
        self.measurement_shape = (2 * self.coils, *self.image_shape[1:])
        self.maps = maps if maps.ndim == 4 else maps[None]
        self._sampled = self._sampled.to(maps.device)
        self._maps_sha256: str | None = None

    def to(self, device: torch.device | str) -> MultiCoilMRI:
        self._sampled = self._sampled.to(device)
        self.maps = self.maps.to(device)
        return self

    def of_slice(self, i: int) -> MultiCoilMRI:
        return self if len(self.maps) == 1 else MultiCoilMRI(self.mask, self.maps[i])

    def forward(self, x: Tensor) -> Tensor:
        return to_channels(centred_fft2(self.maps * to_complex(x)) * self._sampled)

    def adjoint(self, y: Tensor) -> Tensor:
        coil_images = centred_ifft2(to_complex(y) * self._sampled)
        return to_channels((self.maps.conj() * coil_images).sum(dim=1, keepdim=True))

    def support(self) -> Tensor | None:
        """Where some coil sees the image; maps that are zero nowhere have no such place."""
        seen = self.maps.abs().square().sum(dim=1, keepdim=True) > 0
        return None if bool(seen.all()) else seen

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        """Zero-filled coil combination: the adjoint over sum |S|^2."""
        energy = self.maps.abs().square().sum(dim=1, keepdim=True)
        floor = SENSITIVITY_FLOOR * energy.amax(dim=(-2, -1), keepdim=True)
        # A slice whose maps are all zero has a zero adjoint too; 0 / tiny stays 0.
        floor = floor.clamp_min(torch.finfo(energy.dtype).tiny)
        return self.adjoint(y) / torch.maximum(energy, floor)

    def describe(self) -> dict[str, Any]:
        if self._maps_sha256 is None:
            raw = self.maps.detach().cpu().contiguous().numpy().tobytes()
            self._maps_sha256 = hashlib.sha256(raw).hexdigest()
        return {**super().describe(), "coils": self.coils, "maps_sha256": self._maps_sha256}


def _per_sample(rho: Tensor | float, like: Tensor) -> Tensor:
    """Rho as a tensor that broadcasts over ``[B, C, H, W]``; ``[B]`` means one per sample."""
    value = torch.as_tensor(rho, dtype=like.dtype, device=like.device)
    return value.reshape(-1, 1, 1, 1) if value.ndim == 1 else value
