"""Projectors that store no matrix: the weights are computed anew at every product.

They are those of `engine.physics.system_matrix`, and the adjoint spreads along the very weights
the forward product gathers with, so that the pair matches to rounding. What is kept is where each
ray begins and how it leans, some thirty bytes. On the processor compiled loops
(`engine.physics.ray_kernels`) take about the time of the stored matrix, elsewhere torch does the
same for as many rays at once as fit.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.physics import ray_kernels
from engine.physics.compiled_fbp import compiled_sum
from engine.physics.ct import CTOperator, check_shape
from engine.physics.fbp import fbp
from engine.physics.geometry import CTGeometry
from engine.physics.ray_symmetry import Symmetry
from engine.physics.system_matrix import available_memory_bytes, estimate_bytes, runs

# A matrix up to this size is built in seconds and stays in the cache of the process.
MATRIX_BYTES: Final = 2**30
MANY_CROSSINGS: Final = 2**22  # of rays with lines of pixels; fewer take less than a call
PLACES_AT_ONCE: Final = 2**21


def suits_matrix(geometry: CTGeometry) -> bool:
    """Whether a stored matrix serves this geometry best: small, and half of the memory at most.

    Many views that mirror each other are done faster without: their weights are computed once
    for four or eight rays.
    """
    crossings = geometry.views * geometry.detectors * min(geometry.image_size)
    if crossings > MATRIX_BYTES:  # far above: not worth counting
        return False
    if crossings > MANY_CROSSINGS and ray_kernels.available():
        symmetry = Symmetry.of(geometry)
        if symmetry and len(symmetry.positions) >= 4:
            return False
    return estimate_bytes(geometry) <= min(MATRIX_BYTES, available_memory_bytes() // 2)


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

    def part(self, chosen: NDArray[np.int64]) -> RayTable:
        return RayTable(**{name: values[chosen] for name, values in self.arrays().items()})

    def arrays(self) -> dict[str, NDArray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @functools.cached_property
    def all_steep(self) -> bool:
        return bool(self.steep.all())

    @property
    def rays(self) -> tuple[NDArray, ...]:
        """What the compiled loops take."""
        return self.start, self.slope, self.steep, self.first, self.last


class MatrixFreeCTOperator(CTOperator):
    """`CTOperator` for geometries whose matrix would be large: the same sums, to rounding."""

    _on_device: dict[str, Tensor] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = (self.geometry, "cpu", self.dtype, self.filter_name, self.weighting)
        return MatrixFreeCTOperator, made_of

    def to(self, device: torch.device | str) -> MatrixFreeCTOperator:
        self._device, self._on_device = torch.device(device), None
        return self

    @functools.cached_property
    def symmetry(self) -> Symmetry | None:
        return Symmetry.of(self.geometry)

    @functools.cached_property
    def table(self) -> RayTable:
        return RayTable.of(self.geometry)

    def _way(self, slices: int) -> tuple[RayTable, Symmetry | None]:
        """The rays that the compiled loops walk along: few for all while the lanes suffice."""
        symmetry = self.symmetry
        if symmetry and slices * len(symmetry.positions) <= ray_kernels.LANES[-1]:
            return self._few_rays, symmetry
        return self.table, None

    @functools.cached_property
    def _few_rays(self) -> RayTable:
        assert self.symmetry is not None
        return self.table.part(self.symmetry.chosen)

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

    def _compiled_forward(self, images: Tensor) -> Tensor:
        table, symmetry = self._way(len(images))
        images = symmetry.images(images) if symmetry else images
        groups = [_forward_group(table, part) for part in images.split(ray_kernels.LANES[-1])]
        sums = torch.cat(groups) * torch.from_numpy(table.length_mm)
        return symmetry.measurement(sums) if symmetry else sums

    def _compiled_adjoint(self, values: Tensor) -> Tensor:
        table, symmetry = self._way(len(values))
        values = symmetry.values(values) if symmetry else values
        values = values * torch.from_numpy(table.length_mm)
        size = self.geometry.image_size
        parts = values.split(ray_kernels.LANES[-1])
        groups = [_adjoint_group(table, part, size) for part in parts]
        image = torch.cat(groups)
        return symmetry.sum_images(image) if symmetry else image.contiguous()

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
                for name, values in self.table.arrays().items()
            }
        return self._on_device


def _forward_group(table: RayTable, images: Tensor) -> Tensor:
    size = _lanes(len(images))
    loop = ray_kernels.product("forward", size)
    rays, threads = len(table.start), torch.get_num_threads()
    rows = _lines(images, size)
    columns = rows if table.all_steep else _lines(images.mT, size)
    widths = images.shape[-1] + 3, images.shape[-2] + 3
    sums = np.zeros(rays * size, dtype=np.float32)
    each = -(-rays // (4 * threads))

    def act(i: int) -> None:
        part = (i * each, min((i + 1) * each, rays))
        loop(rows, columns, *widths, *table.rays, sums, *part)

    ray_kernels.in_threads(act, -(-rays // each), threads)
    return torch.from_numpy(sums).view(rays, size)[:, : len(images)].T


def _adjoint_group(table: RayTable, values: Tensor, image_size: tuple[int, int]) -> Tensor:
    size = _lanes(len(values))
    loop = ray_kernels.product("adjoint", size)
    height, width = image_size
    flat = functional.pad(values.T, (0, size - len(values))).contiguous().flatten().numpy()
    rows = np.zeros((height, width + 3, size), dtype=np.float32)
    steep = table.all_steep
    columns = rows if steep else np.zeros((width, height + 3, size), dtype=np.float32)
    images = rows.reshape(-1), columns.reshape(-1)
    at_once = ray_kernels.LINES_AT_ONCE

    def act(i: int) -> None:
        part = (i * at_once, (i + 1) * at_once)
        loop(*images, width + 3, height + 3, *table.rays, flat, *part)

    pieces = -(-max(height, width) // at_once)
    ray_kernels.in_threads(act, pieces, torch.get_num_threads())
    image = rows[:, 1:-2]
    if not steep:
        image = image + columns[:, 1:-2].swapaxes(0, 1)
    return torch.from_numpy(image)[..., : len(values)].permute(2, 0, 1)


def _lines(images: Tensor, lanes: int) -> NDArray[np.float32]:
    """Images ``[B, lines, pixels]`` as the loops want them, flat."""
    batch, lines, pixels = images.shape
    padded = images.new_zeros(lines, pixels + 3, lanes)
    padded[:, 1:-2, :batch] = images.permute(1, 2, 0)
    return padded.flatten().numpy()


def _lanes(slices: int) -> int:
    return min(lanes for lanes in ray_kernels.LANES if lanes >= slices)
