"""The acquisition geometry of a 2-D CT scan, in millimetres and radians.

One convention holds everywhere. The image is ``image[row, column]``, row 0 at the top, with
``x = column - (W - 1)/2`` to the right and ``y = (H - 1)/2 - row`` upwards, both times the
pixel size. Views turn counter-clockwise: at angle t the detector axis is (cos t, sin t), so a
parallel ray at detector position s sees the points with

    s = (x - cx) cos t + (y - cy) sin t

where (cx, cy) is the rotation centre. In a fan scan the source is at R (sin t, -cos t) from
that centre and the flat detector, parallel to the same axis, is on the other side.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.spec.errors import RequestError

KINDS: Final = ("parallel", "fan")


@dataclass(frozen=True)
class CTGeometry:
    """Where every ray of a scan goes; validates, hashes and serialises itself.

    Attributes
    ----------
    kind : 'parallel' or 'fan'
    image_size : (rows, columns)
    pixel_mm : side of the square pixels
    angles_rad : one angle per view, in any order and spacing
    detectors : number of detector bins
    pitch_mm : distance between bin centres, on the detector itself
    detector_offset_mm : shift of the detector along its axis, in the direction of rising bins
    centre_offset_mm : (x, y) of the rotation centre relative to the image centre, y upwards
    source_origin_mm : fan only, distance from the source to the rotation centre
    source_detector_mm : fan only, distance from the source to the detector
    """

    kind: str
    image_size: tuple[int, int]
    pixel_mm: float
    angles_rad: tuple[float, ...]
    detectors: int
    pitch_mm: float
    detector_offset_mm: float = 0.0
    centre_offset_mm: tuple[float, float] = (0.0, 0.0)
    source_origin_mm: float | None = None
    source_detector_mm: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise RequestError(f"Unknown CT geometry '{self.kind}': expected 'parallel' or 'fan'.")
        rows, columns = _pair(self.image_size, "image size")
        self._set("image_size", (_count(rows, "image rows"), _count(columns, "image columns")))
        self._set("pixel_mm", _positive(self.pixel_mm, "pixel size"))
        self._set("angles_rad", _angles(self.angles_rad))
        self._set("detectors", _count(self.detectors, "number of detectors"))
        self._set("pitch_mm", _positive(self.pitch_mm, "detector pitch"))
        self._set("detector_offset_mm", _finite(self.detector_offset_mm, "detector offset"))
        x, y = _pair(self.centre_offset_mm, "rotation-centre offset")
        offset = (_finite(x, "rotation-centre offset"), _finite(y, "rotation-centre offset"))
        self._set("centre_offset_mm", offset)
        if self.kind == "parallel":
            self._set("source_origin_mm", None)
            self._set("source_detector_mm", None)
        else:
            self._check_source()

    def _check_source(self) -> None:
        if self.source_origin_mm is None or self.source_detector_mm is None:
            raise RequestError(
                "A fan geometry needs the source-to-centre and the source-to-detector distance."
            )
        origin = _positive(self.source_origin_mm, "source-to-centre distance")
        detector = _positive(self.source_detector_mm, "source-to-detector distance")
        self._set("source_origin_mm", origin)
        self._set("source_detector_mm", detector)
        if origin <= self.radius_mm:
            raise RequestError(
                f"The source is {origin:g} mm from the rotation centre, inside the image, which "
                f"reaches {self.radius_mm:.4g} mm: move the source out or use smaller pixels."
            )
        if detector < origin:
            raise RequestError(
                f"The detector ({detector:g} mm from the source) lies in front of the rotation "
                f"centre ({origin:g} mm): exchange the two distances?"
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    # -- derived quantities ------------------------------------------------------------------

    @property
    def views(self) -> int:
        return len(self.angles_rad)

    @property
    def radius_mm(self) -> float:
        """Distance from the rotation centre to the farthest image corner (outer edge)."""
        rows, columns = self.image_size
        cx, cy = self.centre_offset_mm
        half_width, half_height = columns * self.pixel_mm / 2, rows * self.pixel_mm / 2
        return math.hypot(half_width + abs(cx), half_height + abs(cy))

    @property
    def magnification(self) -> float:
        """How much larger things at the rotation centre appear on the detector (1: parallel)."""
        if self.source_origin_mm is None or self.source_detector_mm is None:
            return 1.0
        return self.source_detector_mm / self.source_origin_mm

    def detector_mm(self) -> NDArray[np.float64]:
        """Position s of every bin centre on the detector."""
        bins = np.arange(self.detectors, dtype=np.float64) - (self.detectors - 1) / 2
        return bins * self.pitch_mm + self.detector_offset_mm

    def pixel_axes_mm(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """x of every column and y of every row, relative to the rotation centre."""
        rows, columns = self.image_size
        cx, cy = self.centre_offset_mm
        x = (np.arange(columns, dtype=np.float64) - (columns - 1) / 2) * self.pixel_mm - cx
        y = ((rows - 1) / 2 - np.arange(rows, dtype=np.float64)) * self.pixel_mm - cy
        return x, y

    # -- serialisation -----------------------------------------------------------------------

    def finer(self, factor: int) -> CTGeometry:
        """The same scan on pixels and detector bins that are ``factor`` times smaller."""
        rows, columns = self.image_size
        return replace(
            self,
            image_size=(rows * factor, columns * factor),
            pixel_mm=self.pixel_mm / factor,
            detectors=self.detectors * factor,
            pitch_mm=self.pitch_mm / factor,
        )

    def is_limited_angle(self) -> bool:
        """Whether a range of directions is not seen: one gap is three times as wide as an even one.

        Opposite views see the same directions, so that they are counted up to 180 degrees.
        """
        directions = np.sort(np.mod(self.angles_rad, np.pi))
        gaps = np.diff(directions, append=directions[0] + np.pi)
        return bool(gaps.max() > 3 * np.pi / self.views)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values; ``from_dict`` gives back an equal geometry."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CTGeometry:
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise RequestError(f"Unknown geometry field '{unknown[0]}'.")
        try:
            return cls(**values)
        except TypeError as error:
            raise RequestError(f"The geometry is incomplete: {error}.") from error

    def fingerprint(self) -> str:
        """A hash of the content: equal geometries, equal hash, on any machine."""
        # json writes the shortest text that reads back as the same double, so this is exact.
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    # -- helpers to make one -----------------------------------------------------------------

    @classmethod
    def sparse_view(
        cls,
        views: int,
        angular_range_deg: float = 180.0,
        start_deg: float = 0.0,
        size: int | tuple[int, int] = 256,
        pixel_mm: float = 1.0,
        kind: str = "parallel",
        detectors: int | None = None,
        pitch_mm: float | None = None,
        detector_offset_mm: float = 0.0,
        centre_offset_mm: tuple[float, float] = (0.0, 0.0),
        source_origin_mm: float | None = None,
        source_detector_mm: float | None = None,
    ) -> CTGeometry:
        """Equally spaced views over an angular range, its end point left out.

        Parameters left out get a sensible value: bins as wide as a pixel seen at the rotation
        centre, as many as cover the image diagonal; a source two diagonals away with the
        detector as far behind the centre.
        """
        views = _count(views, "number of views")
        span = _positive(angular_range_deg, "angular range")
        if span > 360:
            raise RequestError(f"The angular range must be at most 360 degrees, not {span:g}.")
        start = math.radians(_finite(start_deg, "start angle"))
        angles = start + np.arange(views) * (math.radians(span) / views)
        image_size = (size, size) if isinstance(size, int | np.integer) else size
        if kind == "fan":
            rows, columns = _pair(image_size, "image size")
            source_origin_mm = source_origin_mm or 2 * math.hypot(rows, columns) * pixel_mm
            source_detector_mm = source_detector_mm or 2 * source_origin_mm
        # A first geometry with one bin validates the rest and knows radius and magnification.
        first = cls(
            kind=kind,
            image_size=image_size,
            pixel_mm=pixel_mm,
            angles_rad=tuple(angles),
            detectors=1,
            pitch_mm=1.0 if pitch_mm is None else pitch_mm,
            detector_offset_mm=detector_offset_mm,
            centre_offset_mm=centre_offset_mm,
            source_origin_mm=source_origin_mm,
            source_detector_mm=source_detector_mm,
        )
        pitch = pixel_mm * first.magnification if pitch_mm is None else pitch_mm
        if detectors is None:
            detectors = first._bins_to_cover(pitch)
        return cls.from_dict({**first.to_dict(), "detectors": detectors, "pitch_mm": pitch})

    def _bins_to_cover(self, pitch_mm: float) -> int:
        """Bins of this pitch which see every pixel of the image in every view."""
        reach = self.radius_mm
        if self.source_origin_mm is not None and self.source_detector_mm is not None:
            # the tangent from the source to the circle around the image, cut by the detector
            reach *= self.source_detector_mm / math.sqrt(self.source_origin_mm**2 - reach**2)
        width = 2 * (reach + abs(self.detector_offset_mm))
        return max(1, math.ceil(width / pitch_mm - 1e-9))


# -- checks, each one sentence for the person who typed the value --------------------------------


def _finite(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RequestError(f"The {what} must be a number, not {value!r}.") from None
    if not math.isfinite(number):
        raise RequestError(f"The {what} must be finite, not {number}.")
    return number + 0.0  # -0.0 and 0.0 are the same place and must hash the same


def _positive(value: Any, what: str) -> float:
    number = _finite(value, what)
    if number <= 0:
        raise RequestError(f"The {what} must be positive, not {number:g}.")
    return number


def _count(value: Any, what: str) -> int:
    number = _finite(value, what)
    if number != int(number) or not 1 <= number <= 1_000_000:
        raise RequestError(f"The {what} must be a whole number from 1 to 1000000, not {value!r}.")
    return int(number)


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    try:
        first, second = value
    except (TypeError, ValueError):
        raise RequestError(f"The {what} must be two numbers, not {value!r}.") from None
    return first, second


def _angles(values: Any) -> tuple[float, ...]:
    try:
        angles = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise RequestError("The view angles must be numbers, in radians.") from None
    if angles.ndim != 1 or not 1 <= angles.size <= 1_000_000:
        raise RequestError("The view angles must be a list of 1 to 1000000 numbers, in radians.")
    if not np.isfinite(angles).all():
        raise RequestError("A view angle is not finite.")
    return tuple((angles + 0.0).tolist())
