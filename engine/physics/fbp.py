"""Filtered back-projection for parallel and flat-detector fan scans.

A. C. Kak and M. Slaney, Principles of Computerized Tomographic Imaging, chapter 3. The ramp is
the transform of its band-limited spatial kernel, which keeps the mean of the image right, and
the back-projection looks every pixel up on the detector by linear interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.physics.geometry import CTGeometry
from engine.physics.view_weights import view_weights
from engine.spec.errors import RequestError

FILTERS: Final = ("ramp", "shepp-logan", "cosine", "hann", "hamming")
WEIGHTINGS: Final = ("mean", "angle")
VALUES_AT_ONCE: Final = 2**20
EDGE_BINS: Final = 3  # whose mean is what a view sees at an end of the detector


def fbp(
    sinogram: Tensor,
    geometry: CTGeometry,
    filter_name: str = "ramp",
    weighting: str = "mean",
    extrapolate: bool = False,
    sum_views: Callable[[Tensor, CTGeometry], Tensor] | None = None,
) -> Tensor:
    """An image from a sinogram of line integrals in mm.

    Parameters
    ----------
    sinogram : Tensor, ``[B, 1, views, detectors]``
    filter_name : one of `FILTERS`
    weighting : 'mean' or 'angle'
        'mean' gives every view pi / views whatever the angular range: a limited-angle image
        keeps its mean value, and the directions that were seen come out too strong. 'angle'
        gives a view the angle it stands for: seen directions are right, the mean is too low.
        The two agree for a complete scan.
    extrapolate : the object is wider than the detector
        Beyond both ends the line integrals go on, to zero half a detector further on.
    sum_views : what takes the place of `back_project`

    Returns
    -------
    Tensor, ``[B, 1, H, W]``
        A pixel which some views miss is the mean over the views that see it; one which no view
        sees is 0.
    """
    if weighting not in WEIGHTINGS:
        raise RequestError(f"Unknown FBP weighting '{weighting}': expected 'mean' or 'angle'.")
    weights = view_weights(geometry, weighting)
    if geometry.kind == "fan":
        # Rays are inclined to the virtual detector through the rotation centre.
        weights = weights * _fan_cosine(geometry)
    scale = torch.as_tensor(weights, dtype=sinogram.dtype, device=sinogram.device)
    weighted = sinogram * scale
    if extrapolate:
        weighted, geometry = _extrapolated(weighted, geometry)
    filtered = _filtered(weighted, filter_response(geometry, filter_name))
    return (sum_views or back_project)(filtered, geometry)


def _extrapolated(sinogram: Tensor, geometry: CTGeometry) -> tuple[Tensor, CTGeometry]:
    """Half a detector more on each side.

    A view goes on as it ended, turned about its end point (B. Ohnesorge et al., Med. Phys. 27
    (2000) 39), but only downwards, never below zero and with a cosine taper.
    """
    more = (geometry.detectors + 1) // 2
    place = torch.arange(1, more + 1, dtype=sinogram.dtype, device=sinogram.device)
    taper = torch.cos(math.pi / 2 * place / (more + 1)).square()

    def beyond(y: Tensor) -> Tensor:
        """What follows the last bin."""
        end = y[..., -EDGE_BINS:].mean(-1, keepdim=True)
        back = y.flip(-1)[..., :more].cummax(-1).values
        return (2 * end - torch.maximum(back, end)).clamp_min(0) * taper

    wide = torch.cat((beyond(sinogram.flip(-1)).flip(-1), sinogram, beyond(sinogram)), dim=-1)
    return wide, replace(geometry, detectors=geometry.detectors + 2 * more)


def filter_response(geometry: CTGeometry, filter_name: str) -> NDArray[np.float64]:
    """The filter at the frequencies of a real FFT, for bins seen at the rotation centre."""
    if filter_name not in FILTERS:
        raise RequestError(f"Unknown FBP filter '{filter_name}': expected {', '.join(FILTERS)}.")
    from scipy.fft import next_fast_len  # here: it takes long to import, and the app waits

    pitch = geometry.pitch_mm / geometry.magnification
    # Twice the detector makes the circular convolution a linear one; even, so that the kernel
    # below is symmetric.
    length = 2 * next_fast_len(geometry.detectors, real=True)
    n = np.minimum(np.arange(length), length - np.arange(length))
    kernel = np.zeros(length)
    kernel[0] = 0.25
    odd = n % 2 == 1
    kernel[odd] = -1.0 / (math.pi * n[odd]) ** 2
    ramp = np.fft.rfft(kernel).real / pitch
    f = np.linspace(0.0, 1.0, ramp.size)  # in units of the Nyquist frequency
    window = {
        "ramp": np.ones_like(f),
        "shepp-logan": np.sinc(f / 2),
        "cosine": np.cos(math.pi * f / 2),
        "hann": 0.5 + 0.5 * np.cos(math.pi * f),
        "hamming": 0.54 + 0.46 * np.cos(math.pi * f),
    }[filter_name]
    return ramp * window


def _filtered(sinogram: Tensor, response: NDArray[np.float64]) -> Tensor:
    length = 2 * (response.size - 1)
    factor = torch.as_tensor(response, dtype=sinogram.dtype, device=sinogram.device)
    spectrum = torch.fft.rfft(sinogram, n=length) * factor
    return torch.fft.irfft(spectrum, n=length)[..., : sinogram.shape[-1]]


def _fan_cosine(geometry: CTGeometry) -> NDArray[np.float64]:
    """Cosine of the fan angle of every bin."""
    assert geometry.source_detector_mm is not None
    return geometry.source_detector_mm / np.hypot(
        geometry.source_detector_mm, geometry.detector_mm()
    )


def back_project(filtered: Tensor, geometry: CTGeometry) -> Tensor:
    """Sum the views at the place where each pixel falls on the detector."""
    batch = filtered.shape[0]
    rows, columns = geometry.image_size
    like: dict[str, Any] = {"dtype": filtered.dtype, "device": filtered.device}
    x_axis, y_axis = geometry.pixel_axes_mm()
    x = torch.as_tensor(x_axis, **like)[None, None, :]
    y = torch.as_tensor(y_axis, **like)[None, :, None]
    angles = torch.tensor(geometry.angles_rad, dtype=torch.float64)
    cos, sin = (f(angles).to(**like)[:, None, None] for f in (torch.cos, torch.sin))
    image = torch.zeros((batch, rows, columns), **like)
    seen = torch.zeros((rows, columns), **like)
    # One empty bin on each side; -1 and 1 are the centres of those.
    padded = functional.pad(filtered[:, 0], (1, 1))
    reach = (geometry.detectors + 1) / 2
    # A few views at a time: few large steps are quick, and the memory stays bounded.
    group = max(1, VALUES_AT_ONCE // (batch * rows * columns))
    for first in range(0, geometry.views, group):
        part = slice(first, first + group)
        s = x * cos[part] + y * sin[part]
        near = None
        if geometry.source_origin_mm is not None:
            # distance from the source along the central ray, in units of the radius
            distance = 1.0 + (y * cos[part] - x * sin[part]) / geometry.source_origin_mm
            near = distance.reciprocal()
            s = s * near * geometry.magnification
        place = (s - geometry.detector_offset_mm) * (1.0 / (geometry.pitch_mm * reach))
        on_detector = place.abs() <= geometry.detectors / (2 * reach)
        place = torch.where(on_detector, place, 3.0)  # far outside, where the views are 0
        views = padded[:, part].transpose(0, 1)[:, :, None, :]  # [views, B, 1, bins]
        grid = torch.stack((place, torch.zeros_like(place)), dim=-1)
        value = functional.grid_sample(
            views, grid, mode="bilinear", padding_mode="zeros", align_corners=True
        )
        if near is not None:
            value = value * near.square()[:, None]
        image = image + value.sum(0)
        seen += on_detector.sum(0)
    return by_views_that_see(image, seen, geometry.views)[:, None]


def by_views_that_see(image: Tensor, seen: Tensor, views: int) -> Tensor:
    """A pixel which some views miss is the mean over the views that see it."""
    if bool((seen < views).any()):
        return image * torch.where(seen > 0, views / seen.clamp(min=1.0), 0.0)
    return image
