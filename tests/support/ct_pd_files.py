"""Writes DICOM-CT-PD scans of solids whose line integrals are known, from the published layout.

Nothing here is taken from the reader: sources and detector elements are points in the format's
left-handed frame, and every value is the exact integral along the line between two of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ct_ellipses import Ellipse
from numpy.typing import NDArray

SLOPE, INTERCEPT = 2e-4, -0.5
CT_IMAGE = "1.2.840.10008.5.1.4.1.1.2"
EXPLICIT, IMPLICIT = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2"
PUBLIC: dict[str, tuple[int, str]] = {
    "ImageType": (0x00080008, "CS"),
    "SOPClassUID": (0x00080016, "UI"),
    "SOPInstanceUID": (0x00080018, "UI"),
    "Modality": (0x00080060, "CS"),
    "PatientName": (0x00100010, "PN"),
    "PatientID": (0x00100020, "LO"),
    "PatientPosition": (0x00185100, "CS"),
    "StudyInstanceUID": (0x0020000D, "UI"),
    "SeriesInstanceUID": (0x0020000E, "UI"),
    "InstanceNumber": (0x00200013, "IS"),
    "FrameOfReferenceUID": (0x00200052, "UI"),
    "SamplesPerPixel": (0x00280002, "US"),
    "PhotometricInterpretation": (0x00280004, "CS"),
    "NumberOfFrames": (0x00280008, "IS"),
    "Rows": (0x00280010, "US"),
    "Columns": (0x00280011, "US"),
    "BitsAllocated": (0x00280100, "US"),
    "BitsStored": (0x00280101, "US"),
    "HighBit": (0x00280102, "US"),
    "PixelRepresentation": (0x00280103, "US"),
    "RescaleIntercept": (0x00281052, "DS"),
    "RescaleSlope": (0x00281053, "DS"),
}
TAGS: dict[str, tuple[int, str]] = {
    "rows": (0x70291010, "US"),
    "columns": (0x70291011, "US"),
    "column_mm": (0x70291002, "FL"),
    "row_mm": (0x70291006, "FL"),
    "shape": (0x7029100B, "CS"),
    "phi": (0x70311001, "FL"),
    "z": (0x70311002, "FL"),
    "rho": (0x70311003, "FL"),
    "distance": (0x70311031, "FL"),
    "central": (0x70311033, "FL"),
    "dphi": (0x7033100B, "FL"),
    "dz": (0x7033100C, "FL"),
    "drho": (0x7033100D, "FL"),
    "spot_mode": (0x7033100E, "CS"),
    "turn_views": (0x70331013, "US"),
    "spectrum": (0x70331063, "US"),
    "photons": (0x70331065, "FL"),
    "kind": (0x70371009, "CS"),
    "log": (0x70391009, "CS"),
    "mu_water": (0x70411001, "DS"),
}
FORMATS = {"US": "H", "FL": "f"}


@dataclass(frozen=True)
class Solid:
    """An ellipse seen from the feet (x to the patient's left, y to the front), along z to the
    head: an endless cylinder, or an ellipsoid with half height ``c`` around ``z``."""

    ellipse: Ellipse
    z: float = 0.0
    c: float = math.inf


@dataclass
class Scan:
    """One scan; the defaults are a small wide fan on a bent detector with a quarter offset."""

    solids: Sequence[Solid]
    views: Sequence[tuple[float, float]]  # phi, z of the focal centre
    rows: int = 4
    columns: int = 200
    row_mm: float = 3.0
    column_mm: float = 2.2
    central: tuple[float, float] = (98.75, 2.5)  # column, row; from 1
    rho: float = 300.0
    distance: float = 550.0
    shape: str = "CYLINDRICAL"
    shifts: Sequence[tuple[float, float, float]] = ((0.0, 0.0, 0.0),)  # dphi, dz, drho in turn
    spot_mode: str = "FFSNONE"
    turn_views: int = 180
    kind: str = "AXIAL"
    position: str = "HFS"  # '' leaves it out
    transposed: bool = False
    raw_bytes: bool = True  # private values without a type
    implicit: bool = False
    extra: dict[str, Any] = field(default_factory=dict)  # other values; None leaves one out

    def source(self, n: int) -> NDArray:
        phi, z = self.views[n]
        dphi, dz, drho = self.shifts[n % len(self.shifts)]
        rho, phi = self.rho + drho, phi + dphi
        return np.array([-rho * math.sin(phi), rho * math.cos(phi), z + dz])

    def elements(self, n: int) -> NDArray:
        """``[row, column, xyz]``: around the focal centre, not around the source."""
        phi, z = self.views[n]
        focal = np.array([-self.rho * math.sin(phi), self.rho * math.cos(phi)])
        to_axis, to_right = -focal / self.rho, np.array([math.cos(phi), math.sin(phi)])
        along = (np.arange(1, self.columns + 1) - self.central[0])[:, None] * self.column_mm
        if self.shape == "CYLINDRICAL":
            bend = along / self.distance
            plane = focal + self.distance * (np.cos(bend) * to_axis + np.sin(bend) * to_right)
        else:
            plane = focal + self.distance * to_axis + along * to_right
        heights = z - (np.arange(1, self.rows + 1) - self.central[1]) * self.row_mm
        points = np.empty((self.rows, self.columns, 3))
        points[..., :2], points[..., 2] = plane, heights[:, None]
        return points

    def projection(self, n: int) -> NDArray:
        return integrals(self.solids, self.source(n), self.elements(n), self.position)


def turns(count: float, views: int, feed: float = 0.0, start: float = 0.3, z: float = 0.0,
          sign: int = 1) -> list[tuple[float, float]]:  # fmt: skip
    """Views around the patient; angles as scanners store them, within a turn."""
    total = round(count * views)
    return [
        ((start + sign * n * 2 * math.pi / views) % (2 * math.pi), z + feed * n / views)
        for n in range(total)
    ]


def integrals(
    solids: Sequence[Solid], source: NDArray, ends: NDArray, position: str = "HFS"
) -> NDArray:
    """Along the lines from the source through ``ends``."""
    # Feet first: the format's x points to the patient's right and its z to the feet.
    flip = np.array([-1.0, 1.0, -1.0]) if position.startswith("FF") else np.ones(3)
    source, ends = source * flip, ends * flip
    way = (ends - source) / np.linalg.norm(ends - source, axis=-1, keepdims=True)
    total = np.zeros(ends.shape[:-1])
    for solid in solids:
        e = solid.ellipse
        cos, sin = math.cos(e.turn_rad), math.sin(e.turn_rad)
        scaled = np.array(
            [[cos / e.a, sin / e.a, 0], [-sin / e.b, cos / e.b, 0], [0, 0, 1 / solid.c]]
        )
        begin = scaled @ (source - np.array([e.x, e.y, solid.z]))
        move = way @ scaled.T
        square, product = (move**2).sum(-1), move @ begin
        inside = product**2 - square * (begin @ begin - 1)
        total += e.value * 2 * np.sqrt(np.maximum(inside, 0)) / square
    return total


def write_scan(folder: Path, scan: Scan, series: str = "1.2.3.1", first: int = 0) -> Path:
    """One file per view, named so that the order of names is not that of the views."""
    folder.mkdir(parents=True, exist_ok=True)
    names = np.random.default_rng(0).permutation(len(scan.views)) + first
    for n, name in enumerate(names):
        write_view(folder / f"{name:06d}.dcm", scan, n, series)
    return folder


def write_view(path: Path, scan: Scan, n: int, series: str = "1.2.3.1") -> None:
    pixels = np.round((scan.projection(n) - INTERCEPT) / SLOPE)
    assert 0 <= pixels.min() <= pixels.max() <= 65535
    stored = pixels.astype("<u2")
    stored = np.ascontiguousarray(stored.T if scan.transposed else stored)
    values = {
        "ImageType": "ORIGINAL\\PRIMARY\\AXIAL",
        "SOPClassUID": CT_IMAGE,
        "SOPInstanceUID": f"{series}.{n + 1}",
        "Modality": "CT",
        "PatientName": "Secret^Name",
        "PatientID": "SECRET-ID",
        "PatientPosition": scan.position or None,
        "StudyInstanceUID": "1.2.3",
        "SeriesInstanceUID": series,
        "InstanceNumber": n + 1,
        "FrameOfReferenceUID": "1.2.3.4",
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": stored.shape[0],
        "Columns": stored.shape[1],
        "BitsAllocated": 16,
        "BitsStored": 16,
        "HighBit": 15,
        "PixelRepresentation": 0,
        "RescaleSlope": SLOPE,
        "RescaleIntercept": INTERCEPT,
        **private_values(scan, n),
        **scan.extra,
    }
    elements = {0x7FE00010: ("OW", stored.tobytes())}
    for name, value in values.items():
        if value is not None:
            tag, vr = (PUBLIC | TAGS)[name]
            untyped = name in TAGS and scan.raw_bytes
            elements[tag] = "UN" if untyped else vr, encoded(vr, value)
    path.write_bytes(file_bytes(elements, scan.implicit))


def encoded(vr: str, value: Any) -> bytes:
    if vr in FORMATS:
        numbers = value if isinstance(value, tuple) else (value,)
        return struct.pack(f"<{len(numbers)}{FORMATS[vr]}", *numbers)
    text = str(value).encode()
    return text + (b"\0" if vr == "UI" else b" ") * (len(text) % 2)


def file_bytes(elements: dict[int, tuple[str, bytes]], implicit: bool) -> bytes:
    """A DICOM file: preamble, meta header, then the elements by tag."""
    meta = {
        0x00020002: ("UI", encoded("UI", CT_IMAGE)),
        0x00020003: ("UI", elements[0x00080018][1]),
        0x00020010: ("UI", encoded("UI", IMPLICIT if implicit else EXPLICIT)),
    }
    head = b"".join(element(tag, *meta[tag], False) for tag in sorted(meta))
    length = element(0x00020000, "UL", struct.pack("<I", len(head)), False)
    body = b"".join(element(tag, *elements[tag], implicit) for tag in sorted(elements))
    return bytes(128) + b"DICM" + length + head + body


def element(tag: int, vr: str, content: bytes, implicit: bool) -> bytes:
    place = struct.pack("<HH", tag >> 16, tag & 0xFFFF)
    if implicit:
        return place + struct.pack("<I", len(content)) + content
    if vr in ("UN", "OW"):
        return place + vr.encode() + struct.pack("<HI", 0, len(content)) + content
    return place + vr.encode() + struct.pack("<H", len(content)) + content


def private_values(scan: Scan, n: int) -> dict[str, Any]:
    phi, z = scan.views[n]
    dphi, dz, drho = scan.shifts[n % len(scan.shifts)]
    return {
        "rows": scan.rows,
        "columns": scan.columns,
        "column_mm": scan.column_mm,
        "row_mm": scan.row_mm,
        "shape": scan.shape,
        "phi": phi,
        "z": z,
        "rho": scan.rho,
        "distance": scan.distance,
        "central": scan.central,
        "dphi": dphi,
        "dz": dz,
        "drho": drho,
        "spot_mode": scan.spot_mode,
        "turn_views": scan.turn_views,
        "spectrum": 1,
        "photons": (1e5,) * scan.columns,
        "kind": scan.kind,
        "log": "YES",
        "mu_water": "0.02",
    }
