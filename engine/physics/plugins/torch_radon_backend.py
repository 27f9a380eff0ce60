"""CT projections by torch-radon (versions 1 to 3), on CUDA.

What to know about it: the forward projector follows rays and the back-projector follows pixels,
so ``adjoint`` is only approximately the transpose; the back-projector misplaces pixels whose
size is not 1, so everything is passed in pixel units and scaled here; a detector cannot be
shifted; there is room for 4096 views. Version 1 has square images only, of a multiple of 16
pixels, about the rotation centre.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from engine.physics.geometry import CTGeometry
from engine.physics.plugins.base import PluginOperator
from engine.spec.errors import RequestError

MOST_VIEWS: Final = 4096
SIDE_UNIT: Final = 16  # of version 1


class TorchRadonOperator(PluginOperator):
    """Line integrals in mm by torch-radon; ``adjoint`` is approximate (an unmatched pair)."""

    backend = "torch-radon"
    projector = "torch-radon, ray-driven forward, pixel-driven approximate adjoint"

    def __init__(
        self,
        geometry: CTGeometry,
        device: torch.device | str = "cuda",
        filter_name: str = "ramp",
        weighting: str = "mean",
    ) -> None:
        super().__init__(geometry, device, filter_name, weighting)
        if geometry.detector_offset_mm != 0:
            raise RequestError(
                "torch-radon cannot shift the detector: use the native back end or a "
                "detector offset of 0."
            )
        if geometry.views > MOST_VIEWS:
            raise RequestError(
                f"torch-radon takes at most {MOST_VIEWS} views, not {geometry.views}: use the "
                f"native back end or fewer views."
            )
        self._radon = _projector(geometry, _import())

    def _project(self, x: Tensor) -> Tensor:
        return self._radon.forward(x.float().contiguous()) * self.geometry.pixel_mm

    def _back_project(self, y: Tensor) -> Tensor:
        return self._radon.backward(y.float().contiguous()) * self.geometry.pixel_mm


def _import() -> Any:
    try:
        import torch_radon
    except Exception as error:  # it can fail on a missing tkinter, compiler or CUDA runtime
        raise RequestError(f"torch-radon is installed but cannot be loaded: {error}.") from error
    return torch_radon


def _projector(geometry: CTGeometry, package: Any) -> Any:
    # A tensor, because a tuple of three would be read as (start, end, count).
    angles = torch.tensor(geometry.angles_rad, dtype=torch.float32)
    if hasattr(package, "ParallelBeam"):
        return _of_version_2(geometry, package, angles)
    return _of_version_1(geometry, package, angles)


def _of_version_2(geometry: CTGeometry, package: Any, angles: Tensor) -> Any:
    pixel = geometry.pixel_mm
    cx, cy = geometry.centre_offset_mm
    # It places the image relative to the rotation centre, with y downwards.
    volume = package.Volume2D(center=(-cx / pixel, cy / pixel))
    volume.set_size(*geometry.image_size)  # so that adjoint works before the first forward
    spacing = geometry.pitch_mm / pixel
    if geometry.source_origin_mm is None or geometry.source_detector_mm is None:
        return package.ParallelBeam(geometry.detectors, angles, det_spacing=spacing, volume=volume)
    return package.FanBeam(
        geometry.detectors,
        angles,
        src_dist=geometry.source_origin_mm / pixel,
        det_dist=(geometry.source_detector_mm - geometry.source_origin_mm) / pixel,
        det_spacing=spacing,
        volume=volume,
    )


def _of_version_1(geometry: CTGeometry, package: Any, angles: Tensor) -> Any:
    rows, columns = geometry.image_size
    if rows != columns or rows % SIDE_UNIT or any(geometry.centre_offset_mm):
        raise RequestError(
            "torch-radon 1 takes square images of a multiple of 16 pixels about the rotation "
            "centre only: use the native back end or a newer torch-radon."
        )
    pixel, bins = geometry.pixel_mm, geometry.detectors
    spacing = geometry.pitch_mm / pixel
    if geometry.source_origin_mm is None or geometry.source_detector_mm is None:
        return package.Radon(rows, angles, det_count=bins, det_spacing=spacing)
    return package.RadonFanbeam(
        rows,
        angles,
        geometry.source_origin_mm / pixel,
        det_distance=(geometry.source_detector_mm - geometry.source_origin_mm) / pixel,
        det_count=bins,
        det_spacing=spacing,
    )
