"""Where the rotation axis falls on the detector, found from the sinogram itself.

A sinogram that is read with the right geometry is the projection of some image; read with a
wrong one it is not. So every candidate offset is judged by how badly the best image explains
the data: an image is fitted by a few conjugate-gradient steps from the FBP, on a coarse grid,
and what is left over is the residual. All candidates of a step are fitted together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

from engine.physics.ct import CTOperator
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache
from engine.spec.errors import RequestError

BINS, VIEWS, SIDE = 80, 90, 64  # of the coarse problem
STEPS = 6
BATCH = 24
SEARCHED = 0.25  # of the detector's width, to each side


@dataclass(frozen=True)
class Offset:
    """The best detector offset and the relative residual that is left with it."""

    mm: float
    residual: float
    at_edge: bool = False  # the search ended at its limit: there may be a better one beyond


class CoarseScan:
    """A scan on few bins, views and pixels, in which offsets can be compared quickly.

    The coarse detector is centred on the rotation axis; the data are moved under it. One
    system matrix then serves every offset.
    """

    def __init__(self, geometry: CTGeometry) -> None:
        self.geometry = geometry
        self.every = max(1, math.ceil(geometry.views / VIEWS))
        self.factor = max(1.0, geometry.detectors / BINS)
        pitch = geometry.pitch_mm * self.factor
        bins = math.ceil(geometry.detectors / self.factor)
        reach = bins * pitch / 2
        if geometry.source_origin_mm is not None and geometry.source_detector_mm is not None:
            origin = geometry.source_origin_mm
            radius = origin * math.sin(math.atan(reach / geometry.source_detector_mm))
            radius = min(radius, 0.7 * origin)  # the corners stay in front of the source
        else:
            radius = reach
        side = min(SIDE, bins)
        self.coarse = replace(
            geometry,
            image_size=(side, side),
            pixel_mm=2 * radius / side,
            angles_rad=geometry.angles_rad[:: self.every],
            detectors=bins,
            pitch_mm=pitch,
            detector_offset_mm=0.0,
            centre_offset_mm=(0.0, 0.0),
        )
        self.operator = CTOperator(self.coarse, filter_name="hann", cache=MatrixCache(None))

    def smooth(self, sinogram: NDArray) -> CubicSpline:
        """The views as smooth functions of the bin number: sub-bin shifts cost no sharpness."""
        thinned = np.asarray(sinogram[:: self.every], dtype=np.float64)
        sigma = max(1.0, 0.6 * self.factor)
        smoothed = gaussian_filter1d(thinned, sigma, axis=1, mode="nearest")
        return CubicSpline(np.arange(thinned.shape[1]), smoothed, axis=1, extrapolate=False)

    def moved(self, views: CubicSpline, offsets_mm: NDArray) -> tuple[Tensor, Tensor]:
        """``[offsets, 1, views, bins]`` as the coarse detector has them, and where it has any."""
        g = self.geometry
        place = self.coarse.detector_mm()[None, :] - offsets_mm[:, None]
        values = views(place / g.pitch_mm + (g.detectors - 1) / 2)  # [views, offsets, bins]
        y = torch.from_numpy(values.transpose(1, 0, 2).astype(np.float32))[:, None]
        there = torch.isfinite(y)
        return torch.where(there, y, 0.0), there.to(y.dtype)

    def residuals(self, views: CubicSpline, offsets_mm: NDArray) -> NDArray[np.float64]:
        """||A x - y|| / ||y|| for every offset, x being fitted to it."""
        parts = [
            self._fit(*self.moved(views, offsets_mm[i : i + BATCH]))
            for i in range(0, len(offsets_mm), BATCH)
        ]
        return np.concatenate(parts)

    def _fit(self, y: Tensor, there: Tensor) -> NDArray[np.float64]:
        """Conjugate gradients on the rays that were measured, from the FBP on."""
        a, dims, tiny = self.operator, (1, 2, 3), 1e-30
        r = y - there * a.forward(a.pseudo_inverse(y))
        s = a.adjoint(r)
        p, gamma = s, s.square().sum(dims, keepdim=True)
        for _ in range(STEPS):
            q = there * a.forward(p)
            r = r - gamma / q.square().sum(dims, keepdim=True).clamp(min=tiny) * q
            s = a.adjoint(r)
            new = s.square().sum(dims, keepdim=True)
            p, gamma = s + new / gamma.clamp(min=tiny) * p, new
        size = y.square().sum(dims).sqrt().clamp(min=tiny)
        return (r.square().sum(dims).sqrt() / size).double().numpy()

    def find_offset(self, sinogram: NDArray) -> Offset:
        """The offset with the least residual: coarse, then finer around the best, then a
        parabola through the squares, which are quadratic near their least."""
        views = self.smooth(sinogram)
        step = 2 * self.coarse.pitch_mm
        reach = max(2, int(SEARCHED * self.coarse.detectors / 2))
        offsets = np.arange(-reach, reach + 1) * step
        residuals = self.residuals(views, offsets)
        best = int(residuals.argmin())
        at_edge = best in (0, offsets.size - 1)
        centre = float(offsets[best])
        for _ in range(2):
            step /= 4
            offsets = centre + np.arange(-4, 5) * step
            residuals = self.residuals(views, offsets)
            best = int(residuals.argmin())
            centre = float(offsets[best])
        if 0 < best < offsets.size - 1:
            left, middle, right = residuals[best - 1 : best + 2] ** 2
            bend = left - 2 * middle + right
            if bend > 0:
                centre += 0.5 * step * float((left - right) / bend)
        return Offset(centre, float(residuals.min()), at_edge)


def estimate_offset(sinogram: NDArray, geometry: CTGeometry) -> Offset:
    """The detector offset of a scan; ``geometry`` may hold any other one."""
    if not np.isfinite(sinogram).all():
        raise RequestError("The rotation centre cannot be found: some values are not finite.")
    return CoarseScan(geometry).find_offset(sinogram)
