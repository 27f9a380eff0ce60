"""From what a file and a person say of a scan to the rays and the image grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.data.dataset import Fact
from engine.data.sidecar import Described
from engine.physics.field_of_view import field_of_view_mm
from engine.physics.geometry import CTGeometry
from engine.spec.errors import DescriptionNeeded, RequestError

DEFAULT_SIDE = 256
MAX_SIDE = 8192


class GeometryNeeded(DescriptionNeeded):
    """The file does not say how it was measured."""

    def __init__(self, name: str, missing: tuple[str, ...]) -> None:
        wanted = ", ".join(f"⟦{one}⟧" for one in missing)
        sentence = f"{name} does not say how it was measured: give {wanted} (or a sidecar)."
        super().__init__(sentence, missing)


@dataclass(frozen=True)
class Scan:
    """What a file says of its own rays; None where it says nothing.

    ``offset_mm`` is for the bins in the file's order, ``angles_deg`` counter-clockwise.
    """

    views: int
    detectors: int
    angles_deg: NDArray | tuple[float, ...] | None = None
    kind: str | None = None
    pitch_mm: float | None = None
    offset_mm: float | None = None
    source_origin_mm: float | None = None
    source_detector_mm: float | None = None
    energy_kev: float | None = None
    origin: str = "the file"
    offset_origin: str = "the file"


@dataclass(frozen=True)
class Layout:
    """The geometry, and how the file's rows become its sinogram."""

    geometry: CTGeometry
    clockwise: bool
    flip: bool
    binning: int  # neighbouring bins averaged into one
    trim_mm: float  # how far the bins left over by that move the detector's centre
    facts: tuple[Fact, ...]
    range_deg: float | None = None  # the arc that was told, of evenly spread views


class _Told:
    """Looks every value up with the person first and the file second; notes its origin."""

    def __init__(self, scan: Scan, described: Described) -> None:
        self.scan, self.described = scan, described
        self.facts: list[Fact] = []
        self.missing: list[str] = []

    def value(self, option: str, from_file: Any, name: str, unit: str = "") -> Any:
        told = getattr(self.described.options, option)
        if told is not None:
            self.facts.append(Fact(name, f"{_text(told)}{unit}", self.described.origin(option)))
            return told
        if from_file is not None:
            self.facts.append(Fact(name, f"{_text(from_file)}{unit}", self.scan.origin))
            return from_file
        self.missing.append(option)
        return None

    def or_assume(self, option: str, otherwise: Any, name: str, unit: str, origin: str) -> Any:
        told = getattr(self.described.options, option)
        if told is not None:
            self.facts.append(Fact(name, f"{_text(told)}{unit}", self.described.origin(option)))
            return told
        self.facts.append(Fact(name, f"{_text(otherwise)}{unit}", origin))
        return otherwise


def layout(name: str, scan: Scan, described: Described) -> Layout:
    """The rays of a scan and the image to be made from it.

    Raises GeometryNeeded with everything that is missing, at once.
    """
    told = _Told(scan, described)
    kind = told.value("scan_geometry", scan.kind, "rays")
    pitch = told.value("scan_pitch_mm", scan.pitch_mm, "detector pitch", " mm")
    source_origin = source_detector = None
    if kind == "fan":
        source_origin = told.value(
            "scan_source_origin_mm", scan.source_origin_mm, "source to centre", " mm"
        )
        source_detector = told.value(
            "scan_source_detector_mm", scan.source_detector_mm, "source to detector", " mm"
        )
    angles = _angles(name, told)
    flip = told.or_assume("scan_flip", False, "detector reversed", "", "assumed")
    estimated = (scan.offset_mm or 0.0) * (-1 if flip else 1)
    origin = "assumed" if scan.offset_mm is None else scan.offset_origin
    offset = told.or_assume("scan_offset_mm", estimated, "detector offset", " mm", origin)
    if told.missing or angles is None:
        raise GeometryNeeded(name, tuple(told.missing))
    rays = CTGeometry(
        kind=kind,
        image_size=(1, 1),
        pixel_mm=1e-9,  # a point, so that only the rays are checked here
        angles_rad=tuple(np.deg2rad(angles)),
        detectors=scan.detectors,
        pitch_mm=pitch,
        detector_offset_mm=offset,
        source_origin_mm=source_origin,
        source_detector_mm=source_detector,
    )
    geometry, binning = _with_grid(name, rays, told)
    trim = geometry.detector_offset_mm - rays.detector_offset_mm
    clockwise = described.options.scan_direction == "cw"
    facts, span = tuple(told.facts), described.options.scan_range
    return Layout(geometry, clockwise, bool(flip), binning, trim, facts, span)


def _angles(name: str, told: _Told) -> NDArray | None:
    """t_i = start + d (a_i - a_0) for listed angles, start + d i range / views without."""
    scan, described = told.scan, told.described
    options = described.options
    sign = -1.0 if options.scan_direction == "cw" else 1.0
    listed, origin = scan.angles_deg, scan.origin
    if described.angles_deg is not None and described.sidecar is not None:
        listed, origin = described.angles_deg, described.sidecar.name
    if options.scan_range is not None:
        steps = np.arange(scan.views) * (options.scan_range / scan.views)
        start = options.scan_start or 0.0
        origin = described.origin("scan_range")
    elif listed is not None:
        steps = np.asarray(listed, dtype=np.float64)
        if options.scan_angle_unit == "rad":
            steps = np.rad2deg(steps)
        if steps.shape != (scan.views,):
            raise RequestError(f"{name} has {scan.views} views and {steps.size} angles.")
        if not np.isfinite(steps).all():
            raise RequestError(f"{name}: one of its view angles is not a finite number.")
        first = float(steps[0])
        start = sign * first if options.scan_start is None else options.scan_start
        steps = steps - first
    else:
        told.missing.append("scan_range")
        return None
    angles = start + sign * steps
    span = f"{scan.views} from {angles[0]:g} to {angles[-1]:g} deg"
    told.facts.append(Fact("views", span, origin))
    turn = described.origin("scan_direction") if options.scan_direction else "assumed"
    told.facts.append(Fact("direction", options.scan_direction or "ccw", turn))
    return angles


def _with_grid(name: str, rays: CTGeometry, told: _Told) -> tuple[CTGeometry, int]:
    """The square around the field of view; bins finer than half a pixel are averaged."""
    options, described = told.described.options, told.described
    extended = options.extended_fov or 1.0
    seen_mm = 2 * field_of_view_mm(rays)
    side_mm = extended * seen_mm
    fine = rays.pitch_mm / rays.magnification
    if options.pixel_mm is not None:
        pixel, why = options.pixel_mm, described.origin("pixel_mm")
    elif options.size is not None:
        pixel, why = side_mm / options.size, "the field of view over the size asked for"
    elif seen_mm / fine <= DEFAULT_SIDE:
        pixel, why = fine, "the detector pitch at the rotation centre"
    else:
        pixel, why = seen_mm / DEFAULT_SIDE, f"the field of view in {DEFAULT_SIDE} pixels"
    if options.size is not None:
        side, side_why = options.size, described.origin("size")
    else:
        side, side_why = int(side_mm / pixel + 1e-6), "covers the field of view"
    if not 1 <= side <= MAX_SIDE:
        raise RequestError(
            f"{name}: pixels of {pixel:g} mm make an image of {side} x {side}: give ⟦size⟧."
        )
    told.facts.append(Fact("field of view", f"{seen_mm:.4g} mm", "the rays"))
    if extended > 1:
        why_extended = described.origin("extended_fov")
        told.facts.append(Fact("extended field of view", f"{side_mm:.4g} mm", why_extended))
    told.facts.append(Fact("pixel", f"{pixel:.6g} mm", why))
    told.facts.append(Fact("image", f"{side} x {side}", side_why))
    binning = max(1, min(int(pixel / fine + 1e-6), rays.detectors))
    kept = rays.detectors // binning
    if binning > 1:
        text = f"{binning} bins averaged into one: {kept} of {binning * rays.pitch_mm:.4g} mm"
        told.facts.append(Fact("detector binning", text, "pixels are that much larger"))
    values = rays.to_dict() | {
        "image_size": (side, side),
        "pixel_mm": pixel,
        "detectors": kept,
        "pitch_mm": rays.pitch_mm * binning,
        # the bins left over at the end move the centre of those that are kept
        "detector_offset_mm": rays.detector_offset_mm
        + (kept * binning - rays.detectors) / 2 * rays.pitch_mm,
    }
    return CTGeometry.from_dict(values), binning


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)
