"""The system matrix of a CT geometry, with linear-interpolation (Joseph) weights.

A ray that is steeper than 45 degrees crosses every image row once; on each row the two
neighbouring pixels share the step length by linear interpolation. A flatter ray does the same
with columns. P. M. Joseph, IEEE Trans. Med. Imaging 1 (1982) 192. Lengths are in mm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import psutil
from numpy.typing import DTypeLike, NDArray

from engine.physics.geometry import CTGeometry
from engine.spec.errors import RequestError

if TYPE_CHECKING:
    import scipy.sparse

BUILDER_VERSION: Final = 1  # part of the cache key: raise it when the weights change
DEFAULT_BUDGET_BYTES: Final = 6 * 1024**3
INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True)
class CSR:
    """One sparse matrix: row pointers and columns in int32, values in float32 or float64."""

    shape: tuple[int, int]
    crow: NDArray[np.int32]
    col: NDArray[np.int32]
    value: NDArray[np.floating]

    @property
    def nbytes(self) -> int:
        return self.crow.nbytes + self.col.nbytes + self.value.nbytes

    def transposed(self) -> CSR:
        """The exact transpose, its columns in rising order (a counting sort, O(nnz))."""
        turned = self.scipy().tocsc()
        return CSR(
            self.shape[::-1],
            turned.indptr.astype(np.int32, copy=False),
            turned.indices,
            turned.data,
        )

    def scipy(self) -> scipy.sparse.csr_matrix:
        """A view of the same memory."""
        from scipy.sparse import csr_matrix  # here: it takes long to import, and the app waits

        return csr_matrix((self.value, self.col, self.crow), self.shape, copy=False)


@dataclass(frozen=True)
class SystemMatrix:
    """A and its transpose. Rows of A are rays (view-major), columns are pixels (row-major)."""

    forward: CSR
    adjoint: CSR

    @classmethod
    def from_forward(cls, forward: CSR) -> SystemMatrix:
        return cls(forward, forward.transposed())

    @property
    def nbytes(self) -> int:
        return self.forward.nbytes + self.adjoint.nbytes


@dataclass(frozen=True)
class Rays:
    """Neighbouring rays of one view which all walk along rows, or all along columns.

    At step k (a row or a column index) ray i crosses the line of pixel centres at position
    ``start[i] + slope[i] * k`` in pixels; each step is ``length_mm[i]`` long.
    """

    start: NDArray[np.float64]
    slope: NDArray[np.float64]
    length_mm: NDArray[np.float64]
    steps: int  # lines of pixels to walk over
    across: int  # pixels on each of them
    step_stride: int  # distance in memory from one line to the next
    across_stride: int


def build(
    geometry: CTGeometry, dtype: DTypeLike = np.float32, budget_bytes: int | None = None
) -> SystemMatrix:
    """The matrix and its transpose, or a `RequestError` if they would not fit in memory."""
    value_type = np.dtype(dtype)
    check_budget(geometry, value_type, budget_bytes)

    def one_view(view: int) -> tuple[NDArray, NDArray, NDArray]:
        parts = [_entries(rays, value_type) for rays in runs(geometry, view)]
        counts, columns, values = zip(*parts, strict=True)
        return np.concatenate(counts), np.concatenate(columns), np.concatenate(values)

    # A view's arrays fit in the processor's cache; numpy lets go of the interpreter lock.
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
        counts, columns, values = zip(*pool.map(one_view, range(geometry.views)), strict=True)
    rows = geometry.views * geometry.detectors
    crow = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(np.concatenate(counts), out=crow[1:])
    shape = (rows, geometry.image_size[0] * geometry.image_size[1])
    unsorted = CSR(shape, crow, np.concatenate(columns), np.concatenate(values))
    del counts, columns, values
    # Two counting sorts: the first is the transpose we need anyway, the second leaves the
    # columns of every row of A in rising order.
    adjoint = unsorted.transposed()
    del unsorted
    return SystemMatrix(adjoint.transposed(), adjoint)


def runs(geometry: CTGeometry, view: int) -> Iterator[Rays]:
    """The rays of one view in detector order, cut where the walking direction changes."""
    rows, columns = geometry.image_size
    t = geometry.angles_rad[view]
    cos, sin = np.cos(t), np.sin(t)
    s = geometry.detector_mm()
    cx, cy = geometry.centre_offset_mm
    if geometry.source_origin_mm is None or geometry.source_detector_mm is None:
        x, y = s * cos, s * sin
        dx, dy = np.full_like(s, -sin), np.full_like(s, cos)
    else:
        x = np.full_like(s, geometry.source_origin_mm * sin)
        y = np.full_like(s, -geometry.source_origin_mm * cos)
        dx = s * cos - geometry.source_detector_mm * sin
        dy = s * sin + geometry.source_detector_mm * cos
    # From here on in pixel indices: column to the right, row downwards.
    col = (x + cx) / geometry.pixel_mm + (columns - 1) / 2
    row = (rows - 1) / 2 - (y + cy) / geometry.pixel_mm
    steep = np.abs(dx) < np.abs(dy)
    cuts = np.flatnonzero(np.diff(steep)) + 1
    for first, last in zip([0, *cuts], [*cuts, s.size], strict=True):
        part = slice(first, last)
        if steep[first]:
            slope = -dx[part] / dy[part]
            start = col[part] - row[part] * slope
            lines = (rows, columns, columns, 1)
        else:
            slope = -dy[part] / dx[part]
            start = row[part] - col[part] * slope
            lines = (columns, rows, 1, columns)
        yield Rays(start, slope, geometry.pixel_mm * np.hypot(1.0, slope), *lines)


def _entries(rays: Rays, dtype: np.dtype) -> tuple[NDArray, NDArray, NDArray]:
    """Entries per ray, pixel index of every entry, weight of every entry."""
    steps = np.arange(rays.steps)
    position = rays.start[:, None] + rays.slope[:, None] * steps
    lower = np.floor(position)
    share = position - lower
    # Rays far outside would overflow the integer type; -2 is outside as well.
    lower = np.where((lower >= -1) & (lower < rays.across), lower, -2).astype(np.int32)
    weight = np.empty((*position.shape, 2), dtype=dtype)
    np.multiply(1.0 - share, rays.length_mm[:, None], out=weight[..., 0], casting="same_kind")
    np.multiply(share, rays.length_mm[:, None], out=weight[..., 1], casting="same_kind")
    keep = np.empty(weight.shape, dtype=bool)
    keep[..., 0] = lower >= 0
    keep[..., 1] = (lower > -2) & (lower < rays.across - 1)
    keep &= weight > 0
    index = np.empty(weight.shape, dtype=np.int32)
    index[..., 0] = lower * np.int32(rays.across_stride)
    index[..., 0] += (steps * rays.step_stride).astype(np.int32)
    np.add(index[..., 0], np.int32(rays.across_stride), out=index[..., 1])
    return np.count_nonzero(keep, axis=(1, 2)), index[keep], weight[keep]


# -- memory ----------------------------------------------------------------------------------------


def count_entries(geometry: CTGeometry) -> int:
    """An upper bound on the number of stored weights, tight to a few per ray."""
    total = 0
    for view in range(geometry.views):
        for rays in runs(geometry, view):
            # steps k with -1 < start + slope k < across
            with np.errstate(divide="ignore", invalid="ignore"):
                one = (-1.0 - rays.start) / rays.slope
                two = (rays.across - rays.start) / rays.slope
            enter, leave = np.fmin(one, two), np.fmax(one, two)
            flat = rays.slope == 0
            inside = (rays.start > -1) & (rays.start < rays.across)
            enter = np.where(flat, np.where(inside, 0.0, np.inf), enter)
            leave = np.where(flat, np.where(inside, np.inf, -np.inf), leave)
            first = np.clip(np.ceil(enter), 0, rays.steps)
            last = np.clip(np.floor(leave), -1, rays.steps - 1)
            total += 2 * int(np.maximum(last - first + 1, 0).sum())
    return total


def estimate_bytes(geometry: CTGeometry, dtype: DTypeLike = np.float32) -> int:
    """Memory for A and its transpose."""
    pixels = geometry.image_size[0] * geometry.image_size[1]
    pointers = 4 * (pixels + geometry.views * geometry.detectors + 2)
    return 2 * count_entries(geometry) * (4 + np.dtype(dtype).itemsize) + pointers


def check_budget(geometry: CTGeometry, dtype: DTypeLike, budget_bytes: int | None = None) -> None:
    """Refuse, before any large allocation, a geometry whose matrix would not fit."""
    if budget_bytes is None:
        budget_bytes = min(DEFAULT_BUDGET_BYTES, available_memory_bytes() // 2)
    advice = "use fewer views, fewer detectors or a smaller image (FBP needs none)"
    pixels = geometry.image_size[0] * geometry.image_size[1]
    rays = geometry.views * geometry.detectors
    # One view is worked on as a whole, so it has to be small too.
    widest = geometry.detectors * max(geometry.image_size) * 40
    if max(pixels, rays) > INT32_MAX // 2 or 4 * max(pixels, rays) + widest > budget_bytes:
        raise RequestError(
            f"{geometry.views} views of {geometry.detectors} detectors for an image of "
            f"{geometry.image_size[0]} x {geometry.image_size[1]} pixels are too many for one "
            f"system matrix: {advice}."
        )
    needed = estimate_bytes(geometry, dtype)
    per_entry = 2 * (4 + np.dtype(dtype).itemsize)
    if needed > budget_bytes or needed // per_entry > INT32_MAX:
        raise RequestError(
            f"The system matrix of {geometry.views} views x {geometry.detectors} detectors for "
            f"{geometry.image_size[0]} x {geometry.image_size[1]} pixels needs "
            f"{needed / 1e9:.1f} GB of memory and {budget_bytes / 1e9:.1f} GB are allowed: "
            f"{advice}."
        )


def available_memory_bytes() -> int:
    """Memory that could be had without swapping."""
    return int(psutil.virtual_memory().available)
