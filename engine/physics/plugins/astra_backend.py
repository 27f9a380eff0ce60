"""CT projections by the ASTRA toolbox on the CPU, computed on the fly.

Slower than the native matrix and without its memory: for geometries too large for a matrix,
and to compare. The fan kernel of ASTRA on the CPU is the intersection length of ray and pixel;
for parallel beams it is the same linear interpolation as ours.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.physics.geometry import CTGeometry
from engine.physics.plugins.base import PluginOperator
from engine.spec.errors import RequestError


class AstraOperator(PluginOperator):
    """The matched CPU pair FP and BP of ASTRA; images on other devices travel to the CPU."""

    backend = "astra"

    def __init__(
        self,
        geometry: CTGeometry,
        device: torch.device | str = "cpu",
        filter_name: str = "ramp",
        weighting: str = "mean",
    ) -> None:
        super().__init__(geometry, device, filter_name, weighting)
        try:
            import astra
        except ImportError as error:
            raise RequestError(f"ASTRA is installed but cannot be loaded: {error}.") from error
        self._astra = astra
        rows, columns = geometry.image_size
        half_width = columns * geometry.pixel_mm / 2
        half_height = rows * geometry.pixel_mm / 2
        self._volume = astra.create_vol_geom(
            rows, columns, -half_width, half_width, -half_height, half_height
        )
        parallel = geometry.kind == "parallel"
        self._projection = astra.create_proj_geom(
            "parallel_vec" if parallel else "fanflat_vec", geometry.detectors, vectors(geometry)
        )
        kernel = "linear" if parallel else "line_fanflat"
        self.projector = f"ASTRA {astra.__version__} '{kernel}' on the CPU, exact transpose"
        self._projector = astra.create_projector(kernel, self._projection, self._volume)
        weakref.finalize(self, astra.projector.delete, self._projector)

    def _project(self, x: Tensor) -> Tensor:
        return self._each(x, "FP", self.measurement_shape)

    def _back_project(self, y: Tensor) -> Tensor:
        return self._each(y, "BP", self.image_shape)

    def _each(self, source: Tensor, algorithm: str, shape: tuple[int, int, int]) -> Tensor:
        # ASTRA reads our memory in place, so it must be contiguous and single precision.
        images = np.ascontiguousarray(source.detach().cpu().numpy(), dtype=np.float32)
        result = np.zeros((len(images), *shape), dtype=np.float32)
        for image, out in zip(images, result, strict=True):
            volume, sinogram = (image[0], out[0]) if algorithm == "FP" else (out[0], image[0])
            self._run(algorithm, volume, sinogram)
        return torch.from_numpy(result).to(source.device)

    def _run(
        self, algorithm: str, volume: NDArray[np.float32], sinogram: NDArray[np.float32]
    ) -> None:
        data = self._astra.data2d
        volume_id = data.link("-vol", self._volume, volume)
        sinogram_id = data.link("-sino", self._projection, sinogram)
        settings: dict[str, Any] = self._astra.astra_dict(algorithm)
        settings["ProjectorId"] = self._projector
        settings["ProjectionDataId"] = sinogram_id
        settings["VolumeDataId" if algorithm == "FP" else "ReconstructionDataId"] = volume_id
        algorithm_id = self._astra.algorithm.create(settings)
        try:
            self._astra.algorithm.run(algorithm_id)
        finally:
            self._astra.algorithm.delete(algorithm_id)
            data.delete([volume_id, sinogram_id])


def vectors(geometry: CTGeometry) -> NDArray[np.float64]:
    """ASTRA's free form of a geometry: ray or source, detector centre, step to the next bin."""
    t = np.array(geometry.angles_rad)
    cos, sin = np.cos(t), np.sin(t)
    cx, cy = geometry.centre_offset_mm
    shift = geometry.detector_offset_mm
    if geometry.source_origin_mm is None or geometry.source_detector_mm is None:
        begin_x, begin_y, behind = -sin, cos, 0.0
    else:
        begin_x = cx + geometry.source_origin_mm * sin
        begin_y = cy - geometry.source_origin_mm * cos
        behind = geometry.source_detector_mm - geometry.source_origin_mm
    centre_x = cx - behind * sin + shift * cos
    centre_y = cy + behind * cos + shift * sin
    step = geometry.pitch_mm
    return np.stack([begin_x, begin_y, centre_x, centre_y, step * cos, step * sin], axis=1)
