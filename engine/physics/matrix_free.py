"""Projectors that store no matrix: the weights are computed anew at every product.

They are those of `engine.physics.system_matrix`, and the adjoint spreads along the very weights
the forward product gathers with, so that the pair matches to rounding. What is kept is where each
ray begins and how it leans, some thirty bytes. On the processor compiled loops
(`engine.physics.ray_kernels`) take about the time of the stored matrix, elsewhere torch does the
same for as many rays at once as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.physics import ray_kernels
from engine.physics.ct import CTOperator, check_shape
from engine.physics.fbp import by_views_that_see, fbp
from engine.physics.geometry import CTGeometry
from engine.physics.system_matrix import available_memory_bytes, estimate_bytes, runs

# A matrix up to this size is built in seconds and stays in the cache of the process.
MATRIX_BYTES: Final = 2**30
PLACES_AT_ONCE: Final = 2**21
ROWS_AT_ONCE: Final = 16  # of an image in the back-projection: they stay in the cache


def suits_matrix(geometry: CTGeometry) -> bool:
    """Whether a stored matrix serves this geometry well: small, and half of the memory at most."""
    rays = geometry.views * geometry.detectors
    if rays * min(geometry.image_size) > MATRIX_BYTES:  # far above: not worth counting
        return False
    needed = estimate_bytes(geometry)
    return needed <= min(MATRIX_BYTES, available_memory_bytes() // 2)


@dataclass(frozen=True)
class RayTable:
    """Where each ray ``[views x detectors]`` enters the lines of pixels it crosses.

    It crosses line k (a row if ``steep``, else a column) at ``start + slope k`` in pixels, counted
    from the empty one before each line, for ``first <= k < last``.
    """

    start: NDArray[np.float64]
    slope: NDArray[np.float64]
    steep: NDArray[np.bool_]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    length_mm: NDArray[np.float32]

    @classmethod
    def of(cls, geometry: CTGeometry) -> RayTable:
        count = geometry.views * geometry.detectors
        doubles = np.empty(count), np.empty(count)
        limits = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
        lengths = np.empty(count, dtype=np.float32)
        table = cls(*doubles, np.empty(count, dtype=np.bool_), *limits, lengths)
        begin = 0
        for view in range(geometry.views):
            for rays in runs(geometry, view):
                part = slice(begin, begin + rays.start.size)
                begin = part.stop
                start = rays.start + 1
                with np.errstate(divide="ignore", invalid="ignore"):
                    # the lines crossed between the empty pixels 0 and across + 1
                    one, two = -start / rays.slope, (rays.across + 1 - start) / rays.slope
                flat = rays.slope == 0
                outside = flat & ((start < 0) | (start > rays.across + 1))
                enter = np.where(flat, 0, np.ceil(np.fmin(one, two)))
                leave = np.where(flat, rays.steps, np.floor(np.fmax(one, two)) + 1)
                table.start[part], table.slope[part] = start, rays.slope
                table.steep[part] = rays.across_stride == 1
                table.first[part] = np.clip(enter, 0, rays.steps)
                table.last[part] = np.where(outside, 0, np.clip(leave, 0, rays.steps))
                table.length_mm[part] = rays.length_mm
        return table

    @property
    def rays(self) -> tuple[NDArray, ...]:
        """What the compiled loops take."""
        return self.start, self.slope, self.steep, self.first, self.last


class MatrixFreeCTOperator(CTOperator):
    """`CTOperator` for geometries whose matrix would be large: the same sums, to rounding."""

    _table: RayTable | None = None
    _on_device: dict[str, Tensor] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = (self.geometry, "cpu", self.dtype, self.filter_name, self.weighting)
        return MatrixFreeCTOperator, made_of

    def to(self, device: torch.device | str) -> MatrixFreeCTOperator:
        self._device, self._on_device = torch.device(device), None
        return self

    @property
    def table(self) -> RayTable:
        if self._table is None:
            self._table = RayTable.of(self.geometry)
        return self._table

    @property
    def compiled(self) -> bool:
        """Whether the loops of `ray_kernels` do it."""
        on_cpu = self._home.type == "cpu" and self.dtype == torch.float32
        return on_cpu and ray_kernels.available()

    def forward_once(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def _project(self, x: Tensor) -> Tensor:
        images = x.detach().to(self._home, self.dtype)[:, 0]
        sums = self._compiled_forward(images) if self.compiled else self._torch_forward(images)
        return sums.view(len(x), *self.measurement_shape).to(x.device)

    def _back_project(self, y: Tensor) -> Tensor:
        values = y.detach().to(self._home, self.dtype).reshape(len(y), -1)
        image = self._compiled_adjoint(values) if self.compiled else self._torch_adjoint(values)
        return image[:, None].to(y.device)

    def pseudo_inverse(self, y: Tensor) -> Tensor:
        check_shape(y, self.measurement_shape, "sinogram")
        if not self.compiled:
            return super().pseudo_inverse(y)
        y = y.to(self.dtype)
        return fbp(y, self.geometry, self.filter_name, self.weighting, sum_views=compiled_sum)

    def describe(self) -> dict[str, Any]:
        how = "linear interpolation (Joseph), weights computed on the fly, exact adjoint"
        return {**super().describe(), "backend": "matrix-free", "projector": how}

    # -- compiled loops ------------------------------------------------------------------------

    def _widths(self) -> tuple[int, int]:
        rows, columns = self.geometry.image_size
        return columns + 3, rows + 3

    def _compiled_forward(self, images: Tensor) -> Tensor:
        groups = [self._forward_group(group) for group in images.split(ray_kernels.GROUP)]
        return torch.cat(groups) * torch.from_numpy(self.table.length_mm)

    def _forward_group(self, images: Tensor) -> Tensor:
        loop, size = _loop("forward", len(images))
        rays, threads = len(self.table.start), torch.get_num_threads()
        lines = [
            functional.pad(part.permute(1, 2, 0), (0, size - len(images), 1, 2))
            for part in (images, images.mT)
        ]
        rows, columns = (part.contiguous().flatten().numpy() for part in lines)
        sums = np.zeros(rays * size, dtype=np.float32)
        each = -(-rays // (4 * threads))

        def act(i: int) -> None:
            part = (i * each, min((i + 1) * each, rays))
            loop(rows, columns, *self._widths(), *self.table.rays, sums, *part)

        ray_kernels.in_threads(act, -(-rays // each), threads)
        return torch.from_numpy(sums).view(rays, size)[:, : len(images)].T

    def _compiled_adjoint(self, values: Tensor) -> Tensor:
        values = values * torch.from_numpy(self.table.length_mm)
        groups = [self._adjoint_group(group) for group in values.split(ray_kernels.GROUP)]
        return torch.cat(groups).contiguous()

    def _adjoint_group(self, values: Tensor) -> Tensor:
        loop, size = _loop("adjoint", len(values))
        height, width = self.geometry.image_size
        flat = functional.pad(values.T, (0, size - len(values))).contiguous().flatten().numpy()
        rows = np.zeros((height, width + 3, size), dtype=np.float32)
        columns = np.zeros((width, height + 3, size), dtype=np.float32)
        images = rows.reshape(-1), columns.reshape(-1)
        at_once = ray_kernels.LINES_AT_ONCE

        def act(i: int) -> None:
            part = (i * at_once, (i + 1) * at_once)
            loop(*images, *self._widths(), *self.table.rays, flat, *part)

        pieces = -(-max(height, width) // at_once)
        ray_kernels.in_threads(act, pieces, torch.get_num_threads())
        image = rows[:, 1:-2] + columns[:, 1:-2].swapaxes(0, 1)
        return torch.from_numpy(image)[..., : len(values)].permute(2, 0, 1)

    # -- torch, on any device ------------------------------------------------------------------

    def _torch_forward(self, images: Tensor) -> Tensor:
        """Rows and columns behind one another, and all that some rays meet gathered at once."""
        pixels = torch.cat(
            [functional.pad(part, (1, 2)).flatten(1) for part in (images, images.mT)], dim=1
        )
        sums = [
            torch.lerp(pixels[:, index], pixels[:, index + 1], share).sum(1)
            for _, index, share in self._places()
        ]
        return torch.cat(sums, dim=1) * self._tensors()["length_mm"]

    def _torch_adjoint(self, values: Tensor) -> Tensor:
        height, width = self.geometry.image_size
        values = values * self._tensors()["length_mm"]
        sizes = (height * (width + 3), width * (height + 3))
        pixels = values.new_zeros(len(values), sum(sizes))
        for part, index, share in self._places():
            upper = share * values[:, None, part]
            lower = values[:, None, part] - upper
            pixels.index_add_(1, index.flatten(), lower.flatten(1))
            pixels.index_add_(1, index.flatten() + 1, upper.flatten(1))
        rows, columns = pixels.split(sizes, dim=1)
        of_rows = rows.view(-1, height, width + 3)[..., 1:-2]
        return of_rows + columns.view(-1, width, height + 3)[..., 1:-2].mT

    def _places(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some rays, and ``[lines, rays]`` the pixel below each crossing and the share above."""
        rays, (height, width) = self._tensors(), self.geometry.image_size
        line = torch.arange(max(height, width), device=self._home)[:, None]
        at_once = max(1, PLACES_AT_ONCE // len(line))
        for begin in range(0, len(rays["start"]), at_once):
            part = slice(begin, begin + at_once)
            steep = rays["steep"][part]
            crossed = (line >= rays["first"][part]) & (line < rays["last"][part])
            place = rays["start"][part] + rays["slope"][part] * line
            # Elsewhere the empty pixel before the first line.
            place = torch.where(crossed, place.clamp_min_(0), 0.0)
            index = place.long()
            share = (place - index).to(self.dtype)
            offset = torch.where(steep, line * (width + 3), line * (height + 3))
            index += torch.where(crossed, offset, 0) + torch.where(steep, 0, height * (width + 3))
            yield part, index, share

    def _tensors(self) -> dict[str, Tensor]:
        if self._on_device is None:
            self._on_device = {
                name: torch.from_numpy(values).to(self._home)
                for name, values in vars(self.table).items()
            }
        return self._on_device


def _loop(product: str, batch: int) -> tuple[Callable[..., None], int]:
    """A compiled loop for so many slices, and how many it takes."""
    name, size = ("one", 1) if batch == 1 else ("eight", ray_kernels.GROUP)
    return ray_kernels.compiled(f"{product}_{name}"), size


def compiled_sum(filtered: Tensor, geometry: CTGeometry) -> Tensor:
    """`engine.physics.fbp.back_project` in compiled loops, with no memory but the images'."""
    loop, places = ray_kernels.compiled("back_project_rows"), _places_of_pixels(geometry)
    views = functional.pad(filtered[:, 0], (1, 2)).contiguous().numpy()
    images = np.zeros((len(views), *geometry.image_size), dtype=np.float32)
    seen = np.zeros(images.shape, dtype=np.float32)
    rows = geometry.image_size[0]
    pieces = -(-rows // ROWS_AT_ONCE)

    def act(i: int) -> None:
        image, part = divmod(i, pieces)
        low, high = part * ROWS_AT_ONCE, min((part + 1) * ROWS_AT_ONCE, rows)
        parallel = geometry.kind == "parallel"
        loop(views[image], places, parallel, images[image], seen[image], low, high)

    ray_kernels.in_threads(act, len(views) * pieces, torch.get_num_threads())
    images_and_seen = torch.from_numpy(images), torch.from_numpy(seen)
    return by_views_that_see(*images_and_seen, geometry.views)[:, None]


def _places_of_pixels(geometry: CTGeometry) -> NDArray[np.float64]:
    """The six numbers per view of `ray_kernels.back_project_rows`."""
    (x, y), step = geometry.pixel_axes_mm(), geometry.pixel_mm
    cos, sin = np.cos(geometry.angles_rad), np.sin(geometry.angles_rad)
    middle = (geometry.detectors - 1) / 2 - geometry.detector_offset_mm / geometry.pitch_mm
    far = np.stack([np.ones_like(cos), np.zeros_like(cos), np.zeros_like(cos)], axis=1)
    if geometry.source_origin_mm is not None:
        lean = np.stack([y[0] * cos - x[0] * sin, -step * sin, -step * cos], axis=1)
        far += lean / geometry.source_origin_mm
    along = np.stack([x[0] * cos + y[0] * sin, step * cos, -step * sin], axis=1)
    return np.hstack([along * geometry.magnification / geometry.pitch_mm + far * middle, far])
