"""A compressed frame's own headers, checked before a decoder sees them.

The decoders are C libraries inside this process. Some crash, loop or fill the memory when a
stream announces another size or depth than the DICOM header, or when its tables are broken; so
streams that are not what they should be, are cut off, or hold stray markers are refused here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydicom import uid
from pydicom.uid import JPEG2000TransferSyntaxes, JPEGLSTransferSyntaxes

SOI, EOI, SOS, DHT, DRI, LSE = 0xD8, 0xD9, 0xDA, 0xC4, 0xDD, 0xF8
PLAIN_SEGMENTS = {0xDB, 0xFE, *range(0xE0, 0xF0)}  # quantisation, comment, application data
START_OF_FRAME: dict[str, tuple[int, ...]] = {
    uid.JPEGBaseline8Bit: (0xC0,),
    uid.JPEGExtended12Bit: (0xC0, 0xC1),
    uid.JPEGLossless: (0xC3,),
    uid.JPEGLosslessSV1: (0xC3,),
    uid.JPEGLSLossless: (0xF7,),
    uid.JPEGLSNearLossless: (0xF7,),
}


@dataclass(frozen=True)
class Stream:
    """What a codestream says of itself."""

    rows: int
    columns: int
    components: int
    precision: int


def read_codestream(encoded: bytes, syntax: str) -> Stream:
    """ValueError when the stream is not a sound one of its transfer syntax."""
    if syntax in JPEG2000TransferSyntaxes:
        return _read_jpeg2000(encoded)
    return _read_jpeg(encoded, START_OF_FRAME[syntax], syntax in JPEGLSTransferSyntaxes)


def _read_jpeg2000(encoded: bytes) -> Stream:
    start = encoded[:4096].find(b"\xff\x4f\xff\x51")  # inside of boxes, if it has them
    if start < 0 or len(encoded) < start + 43:
        raise ValueError("no JPEG 2000 header")
    width, height, left, top = (
        int.from_bytes(encoded[start + at : start + at + 4], "big") for at in (8, 12, 16, 20)
    )
    components = int.from_bytes(encoded[start + 40 : start + 42], "big")
    return Stream(height - top, width - left, components, (encoded[start + 42] & 0x7F) + 1)


def _read_jpeg(encoded: bytes, frames: tuple[int, ...], is_ls: bool) -> Stream:
    if encoded[:2] != bytes((0xFF, SOI)):
        raise ValueError("no JPEG header")
    at, stream = 2, None
    while True:
        while encoded[at : at + 2] == b"\xff\xff":  # fill
            at += 1
        if len(encoded) < at + 4 or encoded[at] != 0xFF:
            raise ValueError("no marker where there must be one")
        marker, length = encoded[at + 1], int.from_bytes(encoded[at + 2 : at + 4], "big")
        content = encoded[at + 4 : at + 2 + length]
        at += 2 + length
        if length < 2 or len(content) < length - 2:
            raise ValueError("a segment is cut off")
        if marker in frames and stream is None and len(content) == 9:
            stream = _frame(content)
        elif marker == SOS and stream is not None:
            _check_scan(content, stream, frames)
            _check_data(encoded[at:], is_ls)
            return stream
        elif marker == DHT and not is_ls:
            _check_tables(content, is_lossless=frames == (0xC3,))
        elif marker == LSE and is_ls and stream is not None:
            _check_preset(content, stream)
        elif marker not in PLAIN_SEGMENTS and not (marker == DRI and len(content) == 2):
            raise ValueError("an unexpected marker")


def _frame(content: bytes) -> Stream:
    rows, columns = int.from_bytes(content[1:3], "big"), int.from_bytes(content[3:5], "big")
    if content[5] != 1 or content[7] != 0x11 or not 2 <= content[0] <= 16:
        raise ValueError("not one component of 2 to 16 bits")
    return Stream(rows, columns, content[5], content[0])


def _check_scan(content: bytes, stream: Stream, frames: tuple[int, ...]) -> None:
    if len(content) != 6 or content[0] != 1:
        raise ValueError("not one component")
    first, last, shift = content[3:6]
    if frames == (0xF7,):  # NEAR, interleave mode, point transform
        fits = 2 * first < 1 << stream.precision and last == 0 and shift == 0
    elif frames == (0xC3,):  # predictor, nothing, point transform
        fits = 1 <= first <= 7 and last == 0 and shift < stream.precision
    else:
        fits = (first, last, shift) == (0, 63, 0)
    if not fits:
        raise ValueError("a scan that cannot be")


def _check_tables(content: bytes, is_lossless: bool) -> None:
    """Huffman tables: codes of at most 16 bits that do not run out, for sensible values."""
    at = 0
    while at < len(content):
        counts = content[at + 1 : at + 17]
        values = content[at + 17 : at + 17 + sum(counts)]
        used = sum(count << (16 - length) for length, count in enumerate(counts, 1))
        if len(counts) < 16 or len(values) < sum(counts) or used > 1 << 16:
            raise ValueError("a broken Huffman table")
        kind, number = content[at] >> 4, content[at] & 15
        if kind > (0 if is_lossless else 1) or number > 3:
            raise ValueError("a Huffman table that cannot be")
        if kind == 0 and any(value > 16 for value in values):
            raise ValueError("a Huffman table with impossible values")
        at += 17 + len(values)


def _check_preset(content: bytes, stream: Stream) -> None:
    """JPEG-LS coding parameters (ISO 14495-1, C.2.4.1.1); zero stands for the default."""
    if len(content) != 11 or content[0] != 1:
        raise ValueError("unsupported JPEG-LS parameters")
    largest, t1, t2, t3, reset = (
        int.from_bytes(content[at : at + 2], "big") for at in range(1, 11, 2)
    )
    largest = largest or (1 << stream.precision) - 1
    thresholds = [value for value in (t1, t2, t3) if value]
    if largest >= 1 << stream.precision or thresholds != sorted(thresholds):
        raise ValueError("JPEG-LS parameters that cannot be")
    if any(value > largest for value in thresholds) or (reset and not 3 <= reset <= 65535):
        raise ValueError("JPEG-LS parameters that cannot be")


def _check_data(data: bytes, is_ls: bool) -> None:
    """Coded data up to the end marker, with no other marker but restarts in between."""
    codes = np.frombuffer(data, np.uint8)
    after = codes[1:][codes[:-1] == 0xFF]
    if is_ls:
        markers = after[(after >= 0x80) & (after != 0xFF)]
    else:
        markers = after[(after != 0) & ((after < 0xD0) | (after > 0xD7)) & (after != 0xFF)]
    if not len(markers) or markers[0] != EOI:
        raise ValueError("the stream is cut off or broken")
