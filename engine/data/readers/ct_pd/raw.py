"""The private tags of DICOM-CT-PD, and the wanted elements of a file as they are stored.

The tags are those of B. Chen et al., Med. Phys. 42 (2015) 6964, and T. Moen et al., Med. Phys.
48 (2021) 902, table IV. Many writers and readers do not know their types, so the values arrive as
raw bytes; the types below say what the bytes mean. Only the wanted elements are looked at: a
scan has some ten thousand files.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydicom.uid import ExplicitVRBigEndian, ImplicitVRLittleEndian

from engine.data.readers.dicom.scan import META, META_END, UNDEFINED, open_file, quiet_pydicom, walk
from engine.data.readers.dicom.values import BINARY, TEXT, Values, tags_of
from engine.spec.errors import RequestError

PUBLIC = tags_of(
    (
        "DataCollectionDiameter",
        "PatientPosition",
        "SeriesInstanceUID",
        "InstanceNumber",
        "SamplesPerPixel",
        "NumberOfFrames",
        "Rows",
        "Columns",
        "BitsAllocated",
        "PixelRepresentation",
        "RescaleIntercept",
        "RescaleSlope",
    )
)
PRIVATE = {  # tag -> name, type
    0x70291010: ("NumberofDetectorRows", "US"),
    0x70291011: ("NumberofDetectorColumns", "US"),
    0x70291002: ("DetectorElementTransverseSpacing", "FL"),
    0x70291006: ("DetectorElementAxialSpacing", "FL"),
    0x7029100B: ("DetectorShape", "CS"),
    0x70311001: ("DetectorFocalCenterAngularPosition", "FL"),
    0x70311002: ("DetectorFocalCenterAxialPosition", "FL"),
    0x70311003: ("DetectorFocalCenterRadialDistance", "FL"),
    0x70311031: ("ConstantRadialDistance", "FL"),
    0x70311033: ("DetectorCentralElement", "FL"),
    0x7033100B: ("SourceAngularPositionShift", "FL"),
    0x7033100C: ("SourceAxialPositionShift", "FL"),
    0x7033100D: ("SourceRadialDistanceShift", "FL"),
    0x7033100E: ("FlyingFocalSpotMode", "CS"),
    0x70331013: ("NumberofSourceAngularSteps", "US"),
    0x7033105D: ("SourceIndex", "US"),
    0x70331063: ("SpectrumIndex", "US"),
    0x70371009: ("TypeofProjectionData", "CS"),
    0x70391009: ("LogFlag", "CS"),
    0x70411001: ("WaterAttenuationCoefficient", "DS"),
    0x00180061: ("HUCalibrationFactor", "DS"),  # its place in the first version of the format
}
WANTED = PUBLIC | {tag: name for tag, (name, _) in PRIVATE.items()}
TYPES = dict(PRIVATE.values())
MARKS = {tag: name for tag, (name, _) in PRIVATE.items() if tag >> 16 in (0x7029, 0x7031)}
PIXEL_DATA = 0x7FE00010


@dataclass(frozen=True)
class Raw:
    """The wanted elements of a file as they are stored, and where its pixels are."""

    path: Path
    values: Values
    syntax: str
    offset: int
    length: int  # as stated
    available: int  # up to the end of the file

    @property
    def is_projection(self) -> bool:
        """No other object has these elements."""
        return any(name in self.values for name in MARKS.values())


def read_raw(path: Path) -> Raw:
    with quiet_pydicom(path), open_file(path) as stream:
        if stream.read(132)[128:] != b"DICM":
            raise RequestError(f"{path} is not a DICOM file.")
        meta, start = walk(stream, 132, False, True, META, META_END)
        syntax = Values(meta).text("TransferSyntaxUID")
        implicit, little = syntax == ImplicitVRLittleEndian, syntax != ExplicitVRBigEndian
        if not syntax or syntax.startswith("1.2.840.10008.1.2.1.99"):
            raise RequestError(f"{path} is deflated or does not say how it is stored.")
        found, offset = walk(stream, start, implicit, little, WANTED, PIXEL_DATA)
        pixels = _pixel_element(stream, offset, syntax)
    values = Values({name: _typed(name, *raw) for name, raw in found.items()}, little)
    return Raw(path, values, syntax, *pixels)


def _typed(name: str, vr: str, data: bytes) -> tuple[str, bytes]:
    """Private elements often have no type, or UN: give them theirs."""
    if name not in TYPES or vr in BINARY or vr in TEXT:
        return vr, data
    if TYPES[name] == "DS" and len(data) == 4 and data.strip(b"0123456789.+-eE \0"):
        return "FL", data  # not digits: a number of the format's first version
    return TYPES[name], data


def _pixel_element(stream: BinaryIO, offset: int, syntax: str) -> tuple[int, int, int]:
    """Start, stated length and available bytes of the pixels; no bytes when there are none."""
    stream.seek(offset)
    implicit = syntax == ImplicitVRLittleEndian
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    head = stream.read(8 if implicit else 12)
    if len(head) < (8 if implicit else 12):
        return offset, 0, 0
    group, number = struct.unpack_from(order + "HH", head)
    length = struct.unpack_from(order + "I", head, len(head) - 4)[0]
    if (group << 16 | number) != PIXEL_DATA or length == UNDEFINED:
        return offset, 0, 0
    here = offset + len(head)
    return here, length, stream.seek(0, io.SEEK_END) - here
