"""One slice as its header describes it: where its pixels are, what they mean, where it lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydicom.uid import (
    JPEG2000MC,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000MCLossless,
    JPEG2000TransferSyntaxes,
    JPEGLSTransferSyntaxes,
    JPEGTransferSyntaxes,
    RLETransferSyntaxes,
)

from engine.data.dataset import Placement, Vector
from engine.data.readers.dicom.scan import GE_COMPONENT, Header, PixelElement
from engine.data.readers.dicom.values import Values

NATIVE = {ImplicitVRLittleEndian, ExplicitVRLittleEndian, ExplicitVRBigEndian}
DECODED = NATIVE | {
    *JPEGTransferSyntaxes,
    *JPEGLSTransferSyntaxes,
    *JPEG2000TransferSyntaxes,
    *RLETransferSyntaxes,
} - {JPEG2000MC, JPEG2000MCLossless}
# what tells the stacks of one series apart, the most telling first; see stacks.py
MARKS = (
    "EchoTime",
    "DiffusionBValue",
    "DiffusionGradientOrientation",
    "TemporalPositionIdentifier",
    "ConvolutionKernel",
    "ImageType",
    "AcquisitionNumber",
    "TriggerTime",
    "AcquisitionTime",
    "ContentTime",
    "InstanceNumber",
)
Mark = float | str | None
COMPONENTS = {"M": "M", "P": "P", "R": "R", "I": "I", "MAGNITUDE": "M", "PHASE": "P"}
COMPONENTS |= {"REAL": "R", "IMAGINARY": "I", "PHASE MAP": "P"}


@dataclass(frozen=True, slots=True)
class PixelLayout:
    """How the pixels of one file are stored; shared by all its frames."""

    path: Path
    syntax: str
    element: PixelElement
    rows: int
    columns: int
    frames: int
    bits_allocated: int
    bits_stored: int
    high_bit: int
    signed: bool
    photometric: str
    offset_table: tuple[bytes, bytes] | None = None

    @property
    def is_encapsulated(self) -> bool:
        return self.syntax not in NATIVE

    @property
    def frame_bytes(self) -> int:
        return self.rows * self.columns * self.bits_allocated // 8

    @property
    def stored_range(self) -> tuple[int, int]:
        """What BitsStored and PixelRepresentation allow."""
        if self.signed:
            return -(1 << (self.bits_stored - 1)), (1 << (self.bits_stored - 1)) - 1
        return 0, (1 << self.bits_stored) - 1


@dataclass(frozen=True, slots=True)
class Rescale:
    slope: float = 1.0
    intercept: float = 0.0
    type: str = ""
    stated: bool = False


@dataclass(frozen=True, slots=True)
class SliceImage:
    """One frame of one file."""

    pixels: PixelLayout
    frame: int
    uid: str
    instance_number: int
    image_type: tuple[str, ...]
    component: str  # M, P, R, I or '' when not said
    spacing_mm: tuple[float, float] | None
    placement: Placement | None
    thickness_origin: str
    slice_spacing_mm: float | None
    rescale: Rescale
    padding: tuple[int, int] | None
    echo_time: float | None
    tilt_degrees: float
    lossy: bool
    burned_in: bool  # text in the pixels, by BurnedInAnnotation
    marks: tuple[Mark, ...]  # in the order of MARKS

    @property
    def is_localizer(self) -> bool:
        return "LOCALIZER" in self.image_type[2:]

    @property
    def is_mosaic(self) -> bool:
        return "MOSAIC" in self.image_type[2:]

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.rows, self.pixels.columns


def pixel_layout(header: Header) -> PixelLayout | None:
    """None when the header does not describe a grey image."""
    values, element = header.values, header.pixels
    rows, columns = values.integer("Rows"), values.integer("Columns")
    allocated = values.integer("BitsAllocated")
    if element is None or not rows or not columns or not allocated:
        return None
    stored = values.integer("BitsStored") or allocated
    high = values.integer("HighBit")
    tables = [values.raw.get(f"ExtendedOffsetTable{end}", ("", b""))[1] for end in ("", "Lengths")]
    return PixelLayout(
        path=header.path,
        syntax=header.syntax,
        element=element,
        rows=rows,
        columns=columns,
        frames=max(values.integer("NumberOfFrames") or 1, 1),
        bits_allocated=allocated,
        bits_stored=stored,
        high_bit=stored - 1 if high is None else high,
        signed=values.integer("PixelRepresentation") == 1,
        photometric=values.text("PhotometricInterpretation"),
        offset_table=(tables[0], tables[1]) if all(tables) else None,
    )


def make_slice(header: Header, layout: PixelLayout, frame: int, values: Values) -> SliceImage:
    """``values`` are the file's, or for a multi-frame file those of this frame."""
    image_type = tuple(part.upper() for part in values.texts("ImageType"))
    thickness, origin = slice_thickness(values)
    spacing = pixel_spacing(values)
    instance = (values.integer("InstanceNumber") or 0) + frame
    return SliceImage(
        pixels=layout,
        frame=frame,
        uid=header.values.text("SOPInstanceUID"),
        instance_number=instance,
        image_type=image_type,
        component=component_of(values, image_type),
        spacing_mm=spacing,
        placement=placement_of(values, spacing, thickness),
        thickness_origin=origin,
        slice_spacing_mm=_length(values.number("SpacingBetweenSlices")),
        rescale=rescale_of(values),
        padding=padding_of(header.values, layout),
        echo_time=values.number("EchoTime"),
        tilt_degrees=values.number("GantryDetectorTilt") or 0.0,
        lossy=header.values.text("LossyImageCompression") == "01",
        burned_in=header.values.text("BurnedInAnnotation").upper() == "YES",
        marks=(*(mark_of(values, keyword) for keyword in MARKS[:-1]), float(instance)),
    )


def mark_of(values: Values, keyword: str) -> Mark:
    if keyword in ("ConvolutionKernel", "ImageType"):
        return values.text(keyword).upper() or None
    if keyword == "DiffusionGradientOrientation":
        return " ".join(f"{part:.3f}" for part in values.vector(keyword, 3) or ()) or None
    return values.number(keyword)  # a time as hhmmss: its order is all that is used


def component_of(values: Values, image_type: tuple[str, ...]) -> str:
    """Magnitude, phase, real or imaginary, by the places where makers of scanners say it."""
    said = values.text("ComplexImageComponent").upper()
    if said in COMPONENTS:
        return COMPONENTS[said]
    ge = values.raw.get(GE_COMPONENT, ("", b""))[1]
    if ge and len(ge) == 2 and max(ge) <= 3:
        return "MPRI"[max(ge)]
    for part in image_type[2:4]:
        if part in COMPONENTS:
            return COMPONENTS[part]
    return ""


def rescale_of(values: Values) -> Rescale:
    slope, intercept = values.number("RescaleSlope"), values.number("RescaleIntercept")
    stated = slope is not None and intercept is not None and slope != 0
    return Rescale(
        slope if slope else 1.0, intercept or 0.0, values.text("RescaleType").upper(), stated
    )


def padding_of(values: Values, layout: PixelLayout) -> tuple[int, int] | None:
    """The range of stored values that mean 'nothing was measured here'."""
    first = values.integer("PixelPaddingValue", layout.signed)
    if first is None:
        return None
    last = values.integer("PixelPaddingRangeLimit", layout.signed)
    last = first if last is None else last
    return min(first, last), max(first, last)


def pixel_spacing(values: Values) -> tuple[float, float] | None:
    found = values.vector("PixelSpacing", 2)
    if found is None or not all(1e-6 < value < 1e4 for value in found):
        return None
    return found[0], found[1]


def slice_thickness(values: Values) -> tuple[float | None, str]:
    for keyword in ("SliceThickness", "SpacingBetweenSlices"):
        if (value := _length(values.number(keyword))) is not None:
            return value, keyword
    return None, ""


def placement_of(
    values: Values, spacing: tuple[float, float] | None, thickness: float | None
) -> Placement | None:
    """None unless position, spacing and two perpendicular directions are all there."""
    position = values.vector("ImagePositionPatient", 3)
    directions = values.vector("ImageOrientationPatient", 6)
    if position is None or directions is None or spacing is None:
        return None
    row, column = np.array(directions[:3]), np.array(directions[3:])
    lengths = np.linalg.norm(row), np.linalg.norm(column)
    if not all(0.9 < length < 1.1 for length in lengths) or max(map(abs, position)) > 1e6:
        return None
    row, column = row / lengths[0], column / lengths[1]
    if abs(row @ column) > 0.01:
        return None
    return Placement(_vector(position), _vector(row), _vector(column), spacing, thickness)


def _vector(values: np.ndarray | tuple[float, ...]) -> Vector:
    return float(values[0]), float(values[1]), float(values[2])


def _length(value: float | None) -> float | None:
    """DICOM allows SpacingBetweenSlices to be negative (in nuclear medicine)."""
    if value is None or not math.isfinite(value) or not 1e-6 < abs(value) < 1e4:
        return None
    return abs(value)
