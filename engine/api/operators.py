"""CT and MRI operators from plain numbers, for NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from engine.api.data import ARRAY, AnyPrior, Data, as_data
from engine.api.keywords import (
    SCANS,
    Slices,
    checked_seed,
    in_keywords,
    known_names,
    plain,
    refuse_unknown,
    taken,
)
from engine.data.dataset import Dataset
from engine.data.kspace.dataset import KspaceDataset
from engine.data.kspace.grid import KspaceSlice
from engine.data.readers.sinogram_array import open_sinogram_array
from engine.data.sidecar import Described
from engine.data.sinogram.scan_geometry import Scan
from engine.physics.field_of_view import field_of_view_mm
from engine.physics.fourier import to_channels, to_complex
from engine.physics.geometry import CTGeometry
from engine.physics.masks import build_mask, given
from engine.physics.mri import MultiCoilMRI, SingleCoilMRI
from engine.physics.operator import Operator
from engine.physics.plugins import make_ct_operator
from engine.physics.problem import Problem
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions


class ArrayOperator:
    """A forward model for NumPy arrays; ``operator`` is the same one for torch tensors.

    CT images are ``[H, W]`` and sinograms ``[views, detectors]``, real. MR images ``[H, W]`` and
    k-space ``[H, W]`` or ``[coils, H, W]`` are complex. Further axes in front are a batch.
    """

    def __init__(self, operator: Operator, open_measured: Callable[..., Data]) -> None:
        self.operator, self._open = operator, open_measured
        self._is_complex = operator.geometry is None
        self.image_shape = self._shape(operator.image_shape)
        self.measurement_shape = self._shape(operator.measurement_shape)

    def forward(self, image: ArrayLike) -> NDArray:
        """A x: line integrals of an image of attenuation in 1/mm, or k-space."""
        return self._applied(self.operator.forward, image, self.image_shape)

    def adjoint(self, measurement: ArrayLike) -> NDArray:
        """A^H y, the exact adjoint of `forward`."""
        return self._applied(self.operator.adjoint, measurement, self.measurement_shape)

    def pseudo_inverse(self, measurement: ArrayLike) -> NDArray:
        """A quick image: filtered back-projection in 1/mm, or the zero-filled one."""
        return self._applied(self.operator.pseudo_inverse, measurement, self.measurement_shape)

    def data(self, measurement: ArrayLike, **options: Any) -> Data:
        """What was measured, as `open` gives it; ``options`` are those of `open`.

        Sinograms are line integrals unless ``unit`` says otherwise.
        """
        with in_keywords():
            refuse_unknown(options, known_names([InputOptions]), "data()")
            values = np.asarray(measurement)
            self._checked(values, self.measurement_shape)
            return self._open(self.operator, values, taken(options, [InputOptions]))

    def problem(
        self,
        measurement: ArrayLike,
        *,
        slice: Slices = None,
        prior: AnyPrior = "auto",
        seed: int = 0,
        ignore_checks: bool = False,
        **options: Any,
    ) -> Problem:
        """The problem of a measured array; ``options`` as of `open` and of a scan.

        The noise is estimated unless it is given: ``photons=1e5``, ``kspace_noise=0.01`` ...
        """
        with in_keywords():
            scans = SCANS["MR" if self._is_complex else "CT"]
            refuse_unknown(options, known_names([InputOptions, *scans]), "problem()")
            said = taken(options, [InputOptions])
            asked = {name: value for name, value in options.items() if name not in said}
            measured = self.operator.sampled()
            if measured is not None and bool(measured.all()) and "acceleration" not in asked:
                asked["acceleration"] = 1  # nothing of what was measured is left out
            return self.data(measurement, **said).problem(
                slice=slice, prior=prior, seed=seed, ignore_checks=ignore_checks, **asked
            )

    def __repr__(self) -> str:
        return f"<{type(self.operator).__name__} {self.image_shape} -> {self.measurement_shape}>"

    def _shape(self, shape: tuple[int, int, int]) -> tuple[int, ...]:
        channels = shape[0] // 2 if self._is_complex else shape[0]
        return shape[1:] if channels == 1 else (channels, *shape[1:])

    def _checked(self, values: NDArray, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The batch axes of an array whose last axes are ``shape``."""
        batch = values.shape[: max(0, values.ndim - len(shape))]
        if values.shape[len(batch) :] != shape or values.dtype.kind not in "fiubc":
            raise RequestError(
                f"The array must hold numbers of the shape {shape} (with batch axes in front), "
                f"not {values.dtype} {values.shape}."
            )
        if values.dtype.kind == "c" and not self._is_complex:
            raise RequestError("Images and sinograms of CT are real, and these are complex.")
        return batch

    def _applied(
        self, apply: Callable[[Tensor], Tensor], array: ArrayLike, shape: tuple[int, ...]
    ) -> NDArray:
        with in_keywords(), torch.no_grad():
            values = np.asarray(array)
            batch = self._checked(values, shape)
            kind = np.complex64 if self._is_complex else np.float32
            flat = np.array(values, kind).reshape(-1, *(1,) * (3 - len(shape)), *shape)
            x = torch.from_numpy(flat)
            y = apply(to_channels(x) if self._is_complex else x)
            out = (to_complex(y) if self._is_complex else y).cpu().numpy()
            other = self.measurement_shape if shape == self.image_shape else self.image_shape
            return out.reshape(*batch, *(out.shape[2:] if len(other) == 2 else out.shape[1:]))


def ct(
    angles: int | ArrayLike,
    detectors: int | None = None,
    *,
    pitch_mm: float | None = None,
    size: int | tuple[int, int] | None = None,
    pixel_mm: float | None = None,
    geometry: str = "parallel",
    angular_range: float = 180.0,
    offset_mm: float = 0.0,
    source_origin_mm: float | None = None,
    source_detector_mm: float | None = None,
    fbp_filter: str = "ramp",
    backend: str = "auto",
) -> ArrayOperator:
    """Line integrals of two-dimensional CT.

    Parameters
    ----------
    angles
        Of the views in degrees, counter-clockwise; or how many, spread over ``angular_range``.
    detectors, pitch_mm
        Detector bins and their width in mm; by default as wide as a pixel (at the rotation
        centre), and enough to see the whole image.
    size, pixel_mm
        Side (or rows and columns) of the image, and its pixels in mm; by default pixels of one
        bin (at the rotation centre), or of 1 mm, that cover the field of view.
    geometry
        'parallel' or 'fan', with the distances of the source in mm.
    offset_mm
        Shift of the detector along its axis, in the direction of rising bins.
    backend
        'native' stores a matrix, 'matrix-free' none; 'auto' stores one where it is small.
    """
    with in_keywords():
        angles_deg = _numbers(plain(angles), np.float64, "angles")
        if angles_deg.ndim == 0:
            if not (angles_deg == int(angles_deg) and angles_deg >= 1):
                raise RequestError("angles must be a list of degrees, or a number of views.")
            angles_deg = np.arange(int(angles_deg)) * (angular_range / int(angles_deg))
        rays = {
            "kind": geometry,
            "angles_rad": tuple(np.deg2rad(angles_deg).tolist()),
            "detector_offset_mm": offset_mm,
            "source_origin_mm": source_origin_mm,
            "source_detector_mm": source_detector_mm,
        }
        grid = _grid(rays, plain(detectors), pitch_mm, size, pixel_mm)
        made = CTGeometry.from_dict(rays | grid)
        operator = make_ct_operator(made, backend=backend, filter_name=fbp_filter)
        return ArrayOperator(operator, _opened_sinogram)


def mri(
    mask: str | ArrayLike,
    maps: ArrayLike | None = None,
    *,
    shape: tuple[int, int] | None = None,
    acceleration: float = 6.0,
    acs_lines: int | None = None,
    seed: int = 0,
) -> ArrayOperator:
    """Cartesian k-space, zero frequency at N // 2, phase encoding along the last axis.

    Parameters
    ----------
    mask
        1 where k-space was measured: ``[W]`` lines or ``[H, W]`` samples; or a rule by name
        ('inversebench', 'fastmri', 'equispaced', 'random' ...) with ``acceleration``,
        ``acs_lines`` and, for 'random', ``seed``.
    maps
        Complex coil sensitivities ``[coils, H, W]``; one coil without them.
    shape
        (H, W) of the image, where neither maps nor mask say it; square by default.
    """
    with in_keywords():
        tensor = None if maps is None else torch.from_numpy(_numbers(maps, np.complex64, "maps"))
        size = shape if tensor is None else (int(tensor.shape[-2]), int(tensor.shape[-1]))
        if isinstance(mask, str):
            if size is None:
                raise RequestError("A mask by name needs the shape of the image, or maps.")
            rule = build_mask(
                mask, size[1], acceleration, acs_lines=acs_lines, seed=checked_seed(seed)
            )
        else:
            rule = given(_numbers(mask, np.float64, "mask"))
            size = size or (rule.sampled.shape[0], rule.width)
        operator: Operator = (
            SingleCoilMRI(rule, size) if tensor is None else MultiCoilMRI(rule, tensor)
        )
        return ArrayOperator(operator, _opened_kspace)


def _numbers(values: Any, kind: type, what: str) -> NDArray:
    try:
        return np.array(values, dtype=kind)
    except (TypeError, ValueError):
        raise RequestError(f"{what} must be numbers, not {values!r:.60}.") from None


def _grid(
    rays: dict[str, Any],
    detectors: int | None,
    pitch_mm: float | None,
    size: int | tuple[int, int] | None,
    pixel_mm: float | None,
) -> dict[str, Any]:
    """Detector and image, each from the other where one is not given."""
    fan = rays["kind"] == "fan" and rays["source_origin_mm"] and rays["source_detector_mm"]
    zoom = rays["source_detector_mm"] / rays["source_origin_mm"] if fan else 1.0
    if detectors is None:
        grid = CTGeometry.sparse_view(
            views=len(rays["angles_rad"]),
            size=256 if size is None else size,
            pixel_mm=pixel_mm or (pitch_mm / zoom if pitch_mm else 1.0),
            kind=rays["kind"],
            pitch_mm=pitch_mm,
            detector_offset_mm=rays["detector_offset_mm"],
            source_origin_mm=rays["source_origin_mm"],
            source_detector_mm=rays["source_detector_mm"],
        ).to_dict()
        names = ("source_origin_mm", "source_detector_mm", "detectors", "pitch_mm")
        return {name: grid[name] for name in (*names, "image_size", "pixel_mm")}
    pitch = pitch_mm or (pixel_mm or 1.0) * zoom
    made: dict[str, Any] = {"detectors": detectors, "pitch_mm": pitch}
    # a point for an image, so that only the rays are checked here
    alone = CTGeometry.from_dict(rays | made | {"image_size": (1, 1), "pixel_mm": 1e-9})
    seen = 2 * field_of_view_mm(alone)
    if size is None:
        pixel = pixel_mm or pitch / zoom
        size = max(1, round(seen / pixel))
    pair = (size, size) if isinstance(size, int | np.integer) else size
    return made | {"image_size": pair, "pixel_mm": pixel_mm or seen / min(pair)}


def _opened_sinogram(operator: Operator, values: NDArray, said: dict[str, Any]) -> Data:
    rays = operator.geometry
    assert rays is not None
    rows, columns = rays.image_size
    if rows != columns:
        raise RequestError(f"A measured scan makes square images, not {rows} x {columns}.")
    scan = Scan(
        views=rays.views,
        detectors=rays.detectors,
        angles_deg=np.rad2deg(rays.angles_rad),
        kind=rays.kind,
        pitch_mm=rays.pitch_mm,
        offset_mm=rays.detector_offset_mm or None,  # zero: nobody has said it
        source_origin_mm=rays.source_origin_mm,
        source_detector_mm=rays.source_detector_mm,
        origin="the operator",
        offset_origin="the operator",
    )
    grid = {"size": rows, "pixel_mm": rays.pixel_mm, "unit": "line-integral"}
    flat = values.reshape(-1, *values.shape[-2:])

    def opened(options: InputOptions) -> Dataset:
        return open_sinogram_array(flat, ARRAY, options, Described(options), opened, said=scan)

    return as_data(values, grid | said, opened)


def _opened_kspace(
    operator: SingleCoilMRI | MultiCoilMRI, values: NDArray, said: dict[str, Any]
) -> Data:
    sampled = operator.mask.sampled
    maps = operator.maps.numpy() if hasattr(operator, "maps") else None
    coils, size = operator.measurement_shape[0] // 2, operator.image_shape[1:]
    slices = values.reshape(-1, coils, *size)

    def load(number: int) -> KspaceSlice:
        own = None if maps is None else maps[number if len(maps) > 1 else 0]
        return KspaceSlice(np.array(slices[number] * sampled, np.complex64), sampled, maps=own)

    def opened(options: InputOptions) -> Dataset:
        pixel = options.pixel_mm
        return KspaceDataset(
            modality="MR",
            description=str(ARRAY),
            count=len(slices),
            image_size=(size[0], size[1]),
            pixel_mm=None if pixel is None else (pixel, pixel),
            coils=coils,
            load_slice=load,
        )

    return as_data(values, said, opened)
