"""The header of one DICOM file, fast and without trusting it.

A series may have a thousand files and must show its first slice at once, so the few elements
that sorting and decoding need are picked from the bytes by a short loop. What that loop does not
understand is left to pydicom, which reads nearly everything but takes ten times as long.
"""

from __future__ import annotations

import io
import logging
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pydicom
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from engine.data.readers.dicom.values import Values, silence_pydicom, tags_of, values_of
from engine.files.budget import MIB, Budget
from engine.files.path_safety import reading
from engine.spec.errors import RequestError

CHUNK = 1 << 15
MAX_VALUE = 1 << 23  # bytes of one header element that is kept
MAX_ELEMENTS = 2_000_000
UNDEFINED = 0xFFFFFFFF
META_END, PIXELS = 0x00030000, 0x7FE00008
LONG_FORMS = frozenset(b"OB OD OF OL OV OW SQ SV UC UN UR UT UV".split())

META = tags_of(["MediaStorageSOPClassUID", "TransferSyntaxUID"])
KEYWORDS = """SpecificCharacterSet ImageType SOPClassUID SOPInstanceUID Modality SeriesDescription
    SliceThickness EchoTime SpacingBetweenSlices GantryDetectorTilt ComplexImageComponent
    StudyInstanceUID SeriesInstanceUID SeriesNumber InstanceNumber ImagePositionPatient
    ImageOrientationPatient SamplesPerPixel PhotometricInterpretation NumberOfFrames Rows Columns
    PixelSpacing BitsAllocated BitsStored HighBit PixelRepresentation PixelPaddingValue
    PixelPaddingRangeLimit RescaleIntercept RescaleSlope RescaleType ModalityLUTSequence
    LossyImageCompression LossyImageCompressionRatio ExtendedOffsetTable
    ExtendedOffsetTableLengths AcquisitionNumber AcquisitionTime ContentTime TriggerTime
    ConvolutionKernel DiffusionBValue DiffusionGradientOrientation TemporalPositionIdentifier
    BurnedInAnnotation"""
WANTED = tags_of(KEYWORDS.split())
PROJECTION_ROWS = "CT-PD rows"  # private: only projection data has it
GE_COMPONENT = "GE image type"
WANTED |= {0x70291010: PROJECTION_ROWS, 0x0043102F: GE_COMPONENT}

# Their log lines quote what a file holds, patients' names too.
for _name in ("pydicom", "pylibjpeg", "openjpeg"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class _NotUnderstood(Exception):
    """The quick loop met something it leaves to pydicom."""


@dataclass(frozen=True, slots=True)
class PixelElement:
    """Where the pixels are: ``offset`` of the first byte, in the file or in what it inflates to."""

    keyword: str
    vr: str
    offset: int
    length: int  # UNDEFINED when encapsulated
    available: int  # bytes from offset to the end
    inflate_at: int | None = None


@dataclass(frozen=True, slots=True)
class Header:
    path: Path
    values: Values
    syntax: str
    pixels: PixelElement | None


class _Clipped(io.BufferedReader):
    """A file that is never asked for more than it has: a length in a header may lie."""

    def __init__(self, path: Path) -> None:
        raw = io.FileIO(path)
        super().__init__(raw)
        self.size = raw.seek(0, io.SEEK_END)
        raw.seek(0)

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > CHUNK:
            size = max(min(size, self.size - self.tell()), 0)
        return super().read(size)


@contextmanager
def quiet_pydicom(path: Path) -> Iterator[None]:
    """pydicom's warnings stay unsaid (they quote values); its exceptions become one sentence."""
    try:
        with silence_pydicom():
            yield
    except RequestError:
        raise
    except OSError as error:
        reason = error.strerror or "it is cut off"
        raise RequestError(f"{path} cannot be read: {reason}.") from error
    except MemoryError as error:
        raise RequestError(f"{path} needs more memory than there is.") from error
    except Exception as error:  # pydicom raises nearly every kind on broken files
        raise RequestError(f"{path} is damaged or not a DICOM file.") from error


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    with reading(path):
        stream = _Clipped(path)
    with stream:
        yield stream


def read_header(path: Path) -> Header:
    with quiet_pydicom(path), open_file(path) as stream:
        start = stream.read(1 << 10)
        if start[128:132] == b"DICM":
            try:
                return _quick_header(path, stream)
            except (_NotUnderstood, struct.error):
                pass
        if str(DeflatedExplicitVRLittleEndian).encode() in start:
            raise RequestError(f"{path} is damaged: its deflated content cannot be read.")
        stream.seek(0)
        return _pydicom_header(path, stream)


def _quick_header(path: Path, stream: BinaryIO) -> Header:
    found, offset = walk(stream, 132, False, True, META, META_END)
    syntax = Values(found).text("TransferSyntaxUID")
    inflate_at = None
    if syntax == DeflatedExplicitVRLittleEndian:
        inflate_at, offset = offset, 0
        stream, syntax = inflate(path, stream, inflate_at), str(ExplicitVRLittleEndian)
    if not syntax:
        raise _NotUnderstood
    implicit, little = syntax == ImplicitVRLittleEndian, syntax != ExplicitVRBigEndian
    found, offset = walk(stream, offset, implicit, little, WANTED, PIXELS)
    pixels = _pixel_element(stream, offset, implicit, little, inflate_at)
    return Header(path, Values(found, little), syntax, pixels)


def _pydicom_header(path: Path, stream: BinaryIO) -> Header:
    tags = list(WANTED)
    data = pydicom.dcmread(stream, force=True, stop_before_pixels=True, specific_tags=tags)
    implicit, little = data.original_encoding
    syntax = str((getattr(data, "file_meta", None) or {}).get("TransferSyntaxUID", ""))
    if not syntax:
        plain = ExplicitVRLittleEndian if little else ExplicitVRBigEndian
        syntax = str(ImplicitVRLittleEndian if implicit else plain)
    pixels = _pixel_element(stream, stream.tell(), bool(implicit), bool(little), None)
    values = values_of(data, WANTED, bool(little))
    if not values.raw:
        raise RequestError(f"{path} is not a DICOM file, or says nothing of an image.")
    return Header(path, values, syntax, pixels)


def walk(
    stream: BinaryIO,
    offset: int,
    implicit: bool,
    little: bool,
    wanted: dict[int, str],
    until: int,
) -> tuple[dict[str, tuple[str, bytes]], int]:
    """The wanted elements of the outermost level from ``offset`` to the first tag >= ``until``.

    Nesting is counted, not recursed into, so that no file can exhaust the stack.
    """
    order = "<" if little else ">"
    tag_of = struct.Struct(order + "HH").unpack_from
    short = struct.Struct(order + "H").unpack_from
    long = struct.Struct(order + "I").unpack_from
    found: dict[str, tuple[str, bytes]] = {}
    buffer, start, depth = b"", offset, 0
    for _ in range(MAX_ELEMENTS):
        at = offset - start
        if at + 12 > len(buffer):
            stream.seek(offset)
            buffer, start, at = stream.read(CHUNK), offset, 0
            if len(buffer) < 8:
                return found, offset
        group, number = tag_of(buffer, at)
        tag = group << 16 | number
        if group == 0xFFFE:
            length = long(buffer, at + 4)[0]
            if number != 0xE000:
                depth -= 1
            elif length == UNDEFINED:
                depth += 1
            offset += 8 + (length if number == 0xE000 and length != UNDEFINED else 0)
            if depth < 0:
                raise _NotUnderstood
            continue
        if depth == 0 and tag >= until:
            return found, offset
        vr, head = b"", 8
        if implicit:
            length = long(buffer, at + 4)[0]
        else:
            vr = buffer[at + 4 : at + 6]
            if vr in LONG_FORMS:
                length, head = long(buffer, at + 8)[0], 12
            elif vr.isalpha() and vr.isupper():
                length = short(buffer, at + 6)[0]
            else:
                raise _NotUnderstood
        offset += head
        if length == UNDEFINED:
            if vr not in (b"", b"SQ"):
                raise _NotUnderstood
            depth += 1
            continue
        if depth == 0 and tag in wanted and length <= MAX_VALUE:
            at += head
            value = buffer[at : at + length]
            if len(value) < length:
                stream.seek(offset)
                value = stream.read(length)
            found[wanted[tag]] = (vr.decode("latin-1"), value)
        offset += length
    raise ValueError("too many elements")


def _pixel_element(
    stream: BinaryIO, offset: int, implicit: bool, little: bool, inflate_at: int | None
) -> PixelElement | None:
    stream.seek(offset)
    head = stream.read(8 if implicit else 12)
    if len(head) < 8:
        return None
    order = "<" if little else ">"
    tag = struct.unpack_from(order + "HH", head)
    names = {0x0008: "FloatPixelData", 0x0009: "DoubleFloatPixelData", 0x0010: "PixelData"}
    if tag[0] != 0x7FE0 or tag[1] not in names or len(head) < (8 if implicit else 12):
        return None
    vr = "OW" if implicit else head[4:6].decode("latin-1")
    length = struct.unpack_from(order + "I", head, 4 if implicit else 8)[0]
    here = offset + len(head)
    available = stream.seek(0, io.SEEK_END) - here
    return PixelElement(names[tag[1]], vr, here, length, available, inflate_at)


def inflate(path: Path, stream: BinaryIO, offset: int) -> BinaryIO:
    """The data set of a deflated file; refused when it would fill the memory."""
    stream.seek(offset)
    worker, content, budget = zlib.decompressobj(-zlib.MAX_WBITS), bytearray(), Budget(path)
    try:
        while not worker.eof and (packed := worker.unconsumed_tail or stream.read(CHUNK)):
            piece = worker.decompress(packed, MIB)
            budget.expand(len(piece), "inflated, it")
            content += piece
    except zlib.error as error:
        raise RequestError(f"{path} is damaged: its deflated content cannot be read.") from error
    return io.BytesIO(content)
