"""The classes of torch-radon on our own projectors, for scripts written for it, on any device.

    from engine.physics import torch_radon_compat as torch_radon

or, for a script that is not to be changed, ``sys.modules["torch_radon"] = torch_radon_compat``.
Lengths are in the units of the caller, angles in radians, images ``[..., H, W]`` and sinograms
``[..., views, detectors]``, as in torch-radon 1.0.0 (`Radon`, `RadonFanbeam`) and in version 2
and carterbox-torch-radon 3.0 (`ParallelBeam`, `FanBeam`, `Volume2D`). Their conventions were read
in matteo-ronchetti/torch-radon at 5796b2a and 10afd3c and carterbox/torch-radon at 148b811.

What differs: `backward` is the exact transpose of `forward` (theirs follows pixels, and is close
to it), results are float32 whatever comes in, and there is no cone beam.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.spec.errors import RequestError

Angles = Tensor | NDArray[np.floating] | Sequence[float]
SHORTEST = 64  # a padded view


class Volume2D:
    """Where the image lies: the place of its centre, x to the right and y down, and its pixels."""

    def __init__(
        self,
        center: tuple[float, float] = (0.0, 0.0),
        voxel_size: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        if voxel_size[0] != voxel_size[1]:
            raise RequestError(f"Pixels must be square, not {voxel_size[0]:g} x {voxel_size[1]:g}.")
        self.center, self.voxel_size = center, voxel_size
        self.height = self.width = -1

    def has_size(self) -> bool:
        return self.height > 0 and self.width > 0

    def set_size(self, height: int, width: int) -> None:
        self.height, self.width = height, width


class _Projector:
    """What all have in common: images of one geometry in, sinograms out, and back."""

    def __init__(
        self,
        angles: Angles,
        det_count: int,
        det_spacing: float,
        volume: Volume2D,
        src_dist: float | None = None,
        det_dist: float | None = None,
    ) -> None:
        if isinstance(angles, tuple) and len(angles) == 3:  # (first, end, how many)
            angles = np.linspace(angles[0], angles[1], int(angles[2]), endpoint=False)
        self.angles = torch.as_tensor(angles, dtype=torch.float32)
        self.det_count, self.det_spacing, self.volume = det_count, det_spacing, volume
        self._distances: dict[str, Any] = {}
        if src_dist is not None and det_dist is not None:
            self._distances = {
                "source_origin_mm": src_dist,
                "source_detector_mm": src_dist + det_dist,
            }
        self._operator: CTOperator | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Line integrals: ``[..., H, W]`` to ``[..., views, detectors]``."""
        self.volume.set_size(*x.shape[-2:])
        operator = self._operator_on(x.device)
        flat = operator.forward(x.float().reshape(-1, 1, *x.shape[-2:]))
        return flat.reshape(*x.shape[:-2], *flat.shape[-2:])

    def backward(self, sinogram: Tensor) -> Tensor:
        """The transpose of `forward`, for the size of its last image or that of the volume."""
        if not self.volume.has_size():
            raise RequestError("The size of the image is unknown: call forward or set_size first.")
        operator = self._operator_on(sinogram.device)
        y = sinogram.float().reshape(-1, 1, *sinogram.shape[-2:])
        # a pixel has an area: theirs counts how many rays cross it, ours how long they are in it
        flat = operator.adjoint(y) / self.volume.voxel_size[0] ** 2
        return flat.reshape(*sinogram.shape[:-2], *flat.shape[-2:])

    def filter_sinogram(self, sinogram: Tensor, filter_name: str = "ramp") -> Tensor:
        """Of a parallel beam: what `backward` makes a filtered back-projection of."""
        views, size = sinogram.shape[-2:]
        length = max(SHORTEST, 2 ** math.ceil(math.log2(2 * size)))
        response = torch.as_tensor(_response(length, filter_name), device=sinogram.device)
        spectrum = torch.fft.rfft(sinogram.float(), n=length) * response.float()
        filtered = torch.fft.irfft(spectrum, n=length)[..., :size]
        return (filtered * (math.pi / (2 * views))).to(sinogram.dtype)

    def _operator_on(self, device: torch.device) -> CTOperator:
        size = (self.volume.height, self.volume.width)
        if self._operator is None or self._operator.geometry.image_size != size:
            x, y = self.volume.center
            geometry = CTGeometry(
                kind="fan" if self._distances else "parallel",
                image_size=size,
                pixel_mm=self.volume.voxel_size[0],
                angles_rad=tuple(self.angles.tolist()),
                detectors=self.det_count,
                pitch_mm=self.det_spacing,
                centre_offset_mm=(-x, y),  # ours: the rotation centre seen from the image, y up
                **self._distances,
            )
            self._operator = CTOperator(geometry, device)
        if self._operator.device != device:
            self._operator.to(device)
        return self._operator


class ParallelBeam(_Projector):
    """As in torch-radon from version 2 on."""

    def __init__(
        self,
        det_count: int,
        angles: Angles,
        det_spacing: float = 1.0,
        volume: Volume2D | None = None,
    ) -> None:
        super().__init__(angles, det_count, det_spacing, volume or Volume2D())


class FanBeam(_Projector):
    """As in torch-radon from version 2 on: a flat detector."""

    def __init__(
        self,
        det_count: int,
        angles: Angles,
        src_dist: float | None = None,
        det_dist: float | None = None,
        det_spacing: float | None = None,
        volume: Volume2D | None = None,
    ) -> None:
        src_dist = float(det_count) if src_dist is None else src_dist
        det_dist = src_dist if det_dist is None else det_dist
        spacing = (src_dist + det_dist) / src_dist if det_spacing is None else det_spacing
        super().__init__(angles, det_count, spacing, volume or Volume2D(), src_dist, det_dist)


class Radon(_Projector):
    """As in torch-radon 1: square images of a size that is known before."""

    def __init__(
        self,
        resolution: int,
        angles: Angles,
        det_count: int = -1,
        det_spacing: float = 1.0,
        clip_to_circle: bool = False,
    ) -> None:
        _refuse_clipping(clip_to_circle)
        count = det_count if det_count > 0 else resolution
        super().__init__(_listed(angles), count, det_spacing, _square(resolution))

    def backprojection(self, sinogram: Tensor) -> Tensor:
        return self.backward(sinogram)


class RadonFanbeam(_Projector):
    """As in torch-radon 1."""

    def __init__(
        self,
        resolution: int,
        angles: Angles,
        source_distance: float,
        det_distance: float = -1,
        det_count: int = -1,
        det_spacing: float = -1,
        clip_to_circle: bool = False,
    ) -> None:
        _refuse_clipping(clip_to_circle)
        if det_distance < 0:
            det_distance, det_spacing = source_distance, 2.0
        if det_spacing < 0:
            det_spacing = (source_distance + det_distance) / source_distance
        count = det_count if det_count > 0 else resolution
        volume = _square(resolution)
        super().__init__(_listed(angles), count, det_spacing, volume, source_distance, det_distance)

    def backprojection(self, sinogram: Tensor) -> Tensor:
        return self.backward(sinogram)


class ConeBeam:
    """Not here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RequestError("There is no cone beam here yet: parallel and fan beams only.")


def _listed(angles: Angles) -> Tensor:
    """Version 1 knows no (first, end, how many)."""
    return torch.as_tensor(angles, dtype=torch.float32)


def _square(size: int) -> Volume2D:
    volume = Volume2D()
    volume.set_size(size, size)
    return volume


def _refuse_clipping(clip_to_circle: bool) -> None:
    if clip_to_circle:
        raise RequestError("Projections are not clipped to a circle here: mask the image instead.")


def _response(length: int, filter_name: str) -> NDArray[np.float64]:
    """At the frequencies of a real FFT of ``length``: the transform of the band-limited ramp."""
    n = np.minimum(np.arange(length), length - np.arange(length))
    odd = n % 2 == 1
    kernel = np.zeros(length)
    kernel[0] = 0.25
    kernel[odd] = -1.0 / (math.pi * n[odd]) ** 2
    f = np.linspace(0.0, 1.0, length // 2 + 1)  # in units of the Nyquist frequency
    windows = {
        "ramp": np.ones_like(f),
        "ram-lak": np.ones_like(f),
        "shepp-logan": np.sinc(f / 2),
        "cosine": np.cos(math.pi * f / 2),
        "hamming": np.fft.ifftshift(np.hamming(length))[: f.size],
        "hann": np.fft.ifftshift(np.hanning(length))[: f.size],
    }
    if filter_name.lower() not in windows:
        known = ", ".join(windows)
        raise RequestError(f"Unknown filter '{filter_name}': expected one of {known}.")
    return 2 * np.fft.rfft(kernel).real * windows[filter_name.lower()]
