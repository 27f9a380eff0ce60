"""The grid of k-space: which of it was measured, and its way from encoding to image.

Axes are [coils, read, phase] throughout, the zero frequency at N // 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Fact
from engine.spec.input_options import InputOptions

Kspace = NDArray[np.complex64]
Plane = NDArray[np.bool_]

MAX_SLICE_BYTES = 1 << 30


@dataclass
class KspaceSlice:
    """One slice: ``kspace`` complex64 ``[coils, H, W]``, zero where ``sampled`` is false.

    ``sampled`` is ``(W,)`` or ``(H, W)``; ``calibration`` are separate lines, with the same
    two arrays, that serve the maps only; ``maps`` are the file's own ``[coils, H, W]``.
    """

    kspace: Kspace
    sampled: Plane
    calibration: tuple[Kspace, Plane] | None = None
    maps: Kspace | None = None

    def mixed(self, matrix: NDArray) -> KspaceSlice:
        """The slice as coils ``matrix @ y`` see it; maps follow, for y = F S x."""
        calibration = self.calibration
        return KspaceSlice(
            mix_coils(matrix, self.kspace),
            self.sampled,
            None if calibration is None else (mix_coils(matrix, calibration[0]), calibration[1]),
            None if self.maps is None else mix_coils(matrix, self.maps),
        )


def mix_coils(matrix: NDArray, array: Kspace) -> Kspace:
    flat = matrix.astype(np.complex64) @ array.reshape(len(array), -1)
    return flat.reshape(len(matrix), *array.shape[1:])


@dataclass(frozen=True)
class Space:
    """Matrix and field of view (mm), each along read, phase, partition; 0 is unknown."""

    matrix: tuple[int, int, int]
    fov_mm: tuple[float, float, float]


@dataclass
class GridPlan:
    """From the measured grid ``shape`` to that of the image, ``(rows, columns)``.

    Readout oversampling is cut away in image space, where it is exact. Phase-encode lines stay
    as they were measured; lines never measured are added around them when the pixels would
    not be square without. ``crop`` is what the scanner would show of the image.
    """

    shape: tuple[int, int]
    rows: int
    columns: int
    pixel_mm: tuple[float, float] | None = None
    crop: tuple[int, int] | None = None
    facts: list[Fact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def apply(self, kspace: Kspace) -> Kspace:
        if self.rows < self.shape[0]:
            kspace = crop_readout(kspace, self.rows)
        return pad_phase(kspace, self.columns)

    def apply_mask(self, sampled: Plane) -> Plane:
        """Lines ``(W,)`` when all rows were measured, else the plane ``(H, W)``."""
        if sampled.ndim == 2:
            # Row m of the small grid lies at this row of the large one.
            m = np.arange(self.rows) - self.rows // 2
            at = np.rint(m * (self.shape[0] / self.rows)).astype(int) + self.shape[0] // 2
            sampled = sampled[np.clip(at, 0, self.shape[0] - 1)]
        return as_lines(pad_phase(sampled, self.columns))

    def apply_to_image(self, image: Kspace) -> Kspace:
        """The rows that remain of something that lives in image space, such as maps."""
        return image[..., centre_slice(self.shape[0], self.rows), :]


def plan_grid(
    shape: tuple[int, int], encoded: Space | None, recon: Space | None, options: InputOptions
) -> GridPlan:
    """What a header (or ``options``) says about a measured grid of ``shape``."""
    rows, columns = shape
    plan = GridPlan(shape, rows, columns)
    if encoded and recon and encoded.matrix[0] != rows:
        plan.warnings.append(
            f"The header speaks of {encoded.matrix[0]} samples per line, the data have {rows}; "
            "its image size and field of view are not used."
        )
        encoded = recon = None
    _plan_rows(plan, encoded, recon, options)
    if encoded and min(encoded.fov_mm[:2]) > 0:
        _plan_pixels(plan, encoded)
    if options.pixel_mm is not None:
        plan.pixel_mm = (options.pixel_mm, options.pixel_mm)
        plan.facts.append(Fact("pixel", f"{options.pixel_mm:g} mm", "option"))
    _plan_crop(plan, encoded, recon, options)
    return plan


def _plan_rows(
    plan: GridPlan, encoded: Space | None, recon: Space | None, options: InputOptions
) -> None:
    wanted, origin = plan.rows, ""
    if options.size is not None:
        wanted, origin = options.size, "option"
    elif encoded and recon and min(encoded.fov_mm[0], recon.fov_mm[0]) > 0:
        wanted = round(plan.rows * recon.fov_mm[0] / encoded.fov_mm[0])
        origin = "encoded and reconstructed field of view in the header"
    elif encoded and recon:
        wanted, origin = recon.matrix[0], "assumed: the header has no field of view"
    if 8 <= wanted < plan.rows:
        plan.rows = wanted
        plan.facts.append(
            Fact("readout oversampling removed", f"{plan.shape[0]} to {wanted} samples", origin)
        )


def _plan_pixels(plan: GridPlan, encoded: Space) -> None:
    along_read = encoded.fov_mm[0] / plan.shape[0]
    along_phase = encoded.fov_mm[1] / plan.shape[1]
    columns = round(encoded.fov_mm[1] / along_read)
    # Below, it is rounding; beyond, a wrong header is more likely than so coarse a scan.
    if 1.02 * plan.shape[1] < columns <= 2 * plan.shape[1]:
        plan.columns, along_phase = columns, encoded.fov_mm[1] / columns
        plan.facts.append(
            Fact(
                "unmeasured outer lines added",
                f"{plan.shape[1]} to {columns} lines, for square pixels",
                "encoded field of view in the header",
            )
        )
    plan.pixel_mm = (along_read, along_phase)
    text = f"{along_read:.4g} x {along_phase:.4g} mm"
    plan.facts.append(Fact("pixel", text, "encoded field of view in the header"))


def _plan_crop(
    plan: GridPlan, encoded: Space | None, recon: Space | None, options: InputOptions
) -> None:
    """Columns outside the reconstructed field of view were encoded only against fold-over."""
    columns = plan.columns
    if options.size is not None:
        columns = min(columns, options.size)
    elif encoded and recon and min(encoded.fov_mm[1], recon.fov_mm[1]) > 0:
        columns = min(columns, round(columns * recon.fov_mm[1] / encoded.fov_mm[1]))
    elif encoded and recon and recon.matrix[1] > 0:
        columns = min(columns, recon.matrix[1])
    if 8 <= columns < plan.columns:
        plan.crop = (plan.rows, columns)
        value = f"the middle {columns} of {plan.columns} columns"
        origin = "option" if options.size is not None else "reconstructed space in the header"
        plan.facts.append(Fact("image proper", value, origin))


def centre_slice(n: int, kept: int) -> slice:
    """The ``kept`` samples that keep index n // 2 at kept // 2."""
    start = n // 2 - kept // 2
    return slice(start, start + kept)


def crop_readout(kspace: Kspace, rows: int) -> Kspace:
    """Cut the field of view along the readout; orthonormal, so noise keeps its SD."""
    shifted = np.fft.ifftshift(kspace, axes=-2)
    image = np.fft.fftshift(np.fft.ifft(shifted, axis=-2, norm="ortho"), axes=-2)
    image = image[..., centre_slice(kspace.shape[-2], rows), :]
    spectrum = np.fft.fft(np.fft.ifftshift(image, axes=-2), axis=-2, norm="ortho")
    return np.fft.fftshift(spectrum, axes=-2).astype(np.complex64)


def pad_phase(array: NDArray, columns: int) -> NDArray:
    """Zeros around the last axis, the zero frequency staying at N // 2."""
    width = array.shape[-1]
    if columns == width:
        return array
    before = columns // 2 - width // 2
    margins = [(0, 0)] * (array.ndim - 1) + [(before, columns - width - before)]
    return np.pad(array, margins)


def measured_lines(sampled: Plane) -> Plane:
    """Lines ``(W,)`` that were measured at all."""
    return np.asarray(np.atleast_2d(sampled).any(axis=0))


def as_lines(sampled: Plane) -> Plane:
    """A plane whose columns are all or nothing as one row of lines."""
    if sampled.ndim == 2 and (sampled.all(axis=0) == sampled.any(axis=0)).all():
        return measured_lines(sampled)
    return sampled


def measured_samples(kspace: Kspace) -> Plane:
    """What was measured of a slice that does not say: where it is not exactly zero.

    Single zeros among measured lines happen; only a plane with many is a plane of points.
    """
    plane = (kspace != 0).any(axis=0)
    rows, columns = plane.any(axis=1), plane.any(axis=0)
    rectangle = np.outer(rows, columns)
    if plane.sum() > 0.9 * rectangle.sum():
        plane = rectangle
    return as_lines(plane)


def is_complete(sampled: Plane) -> bool:
    """Whether all lines of a symmetric range were measured: no acceleration, no partial Fourier.

    Scanners leave out an equal share of lines at both ends; that lowers resolution, no more.
    """
    plane = np.atleast_2d(sampled)
    rows, columns = measured_lines(plane.T), measured_lines(plane)
    whole = bool((plane == np.outer(rows, columns)).all())
    return whole and full_run(rows) and full_run(columns)


def full_run(measured: Plane) -> bool:
    indices, n = np.flatnonzero(measured), len(measured)
    if 2 * len(indices) < n or indices[-1] - indices[0] + 1 != len(indices):
        return False
    before, after = indices[0], n - 1 - indices[-1]
    return bool(abs(before - after) <= 2 + 0.02 * n)


def one_sided(measured: Plane) -> bool:
    """Whether k-space was measured farther to one side of its centre than to the other."""
    indices, centre = np.flatnonzero(measured), len(measured) // 2
    before, after = centre - int(indices[0]), int(indices[-1]) - centre
    step = int(np.diff(indices).max(initial=1))  # a pattern may end a step earlier on one side
    return abs(before - after) > step + 1 + 0.02 * len(measured)


def line_gaps(sampled: Plane) -> NDArray[np.float64]:
    """For each line the stretch of k-space nearest to it, 0 where none was measured."""
    lines = measured_lines(sampled)
    at = np.flatnonzero(lines)
    gaps = np.zeros(len(lines))
    if len(at) < 2:
        gaps[at] = 1
        return gaps
    step = np.diff(at)
    gaps[at] = (np.concatenate((step[:1], step)) + np.concatenate((step, step[-1:]))) / 2
    return gaps
