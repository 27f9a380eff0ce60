"""Numbers of one slice: decode one frame, leave out unused bits, rescale, fill the padding.

DICOM's photometric interpretation MONOCHROME1 tells how to show an image (small values white).
It does not change HU, so a CT slice is never inverted; an unsigned MR magnitude is, because only
then is the background dark, as the signal was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from pydicom import uid
from pydicom.encaps import get_frame
from pydicom.pixels import get_decoder
from pydicom.uid import JPEG2000TransferSyntaxes, JPEGLSTransferSyntaxes

from engine.data.images.air import AIR_HU
from engine.data.readers.dicom.image import PixelLayout, SliceImage
from engine.data.readers.dicom.scan import inflate, open_file, quiet_pydicom
from engine.files.budget import Budget
from engine.spec.errors import RequestError

# the decoder to ask where there are several; gdcm, the least robust, where there is no other
PREFERRED: dict[str, str] = {
    uid.JPEGBaseline8Bit: "pillow",
    uid.JPEGExtended12Bit: "pillow",
    uid.JPEGLSLossless: "pyjpegls",
    uid.JPEGLSNearLossless: "pyjpegls",
    uid.JPEG2000Lossless: "pylibjpeg",
    uid.JPEG2000: "pylibjpeg",
}


def read_slice(image: SliceImage, modality: str) -> np.ndarray:
    """float32 HU (CT) or signal (MR) ``[rows, columns]``."""
    stored, padded = stored_values(image)
    layout, rescale = image.pixels, image.rescale
    if is_inverted(image, modality):
        stored = layout.stored_range[1] - stored.astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # an absurd slope; loading finds it
        values = stored.astype(np.float64) * rescale.slope + rescale.intercept
        values = values.astype(np.float32)
    if padded is not None:
        values[padded] = AIR_HU if modality == "CT" else 0.0
    return values


def is_inverted(image: SliceImage, modality: str) -> bool:
    layout = image.pixels
    is_magnitude = image.component in ("", "M") and not layout.signed
    return modality == "MR" and layout.photometric == "MONOCHROME1" and is_magnitude


def stored_values(image: SliceImage) -> tuple[np.ndarray, np.ndarray | None]:
    """The stored numbers, and where they are padding."""
    layout = image.pixels
    raw = decode(layout, image.frame)
    stored = used_bits(raw, layout)
    if image.padding is None:
        return stored, None
    low, high = image.padding
    padded = (stored >= low) & (stored <= high)
    if low < layout.stored_range[0] or high > layout.stored_range[1]:
        padded |= (raw >= low) & (raw <= high)  # some scanners pad with the unused bits
    return stored, padded


def used_bits(raw: np.ndarray, layout: PixelLayout) -> np.ndarray:
    """Bits HighBit + 1 - BitsStored ... HighBit, sign extended; others may hold anything."""
    below = layout.high_bit + 1 - layout.bits_stored
    above = layout.bits_allocated - layout.high_bit - 1
    if not _is_plain(layout) or not (below or above):
        return raw
    return np.right_shift(np.left_shift(raw, above), above + below)


def decode(layout: PixelLayout, frame: int) -> np.ndarray:
    """One frame as it is stored ``[rows, columns]``, in the machine's byte order."""
    with quiet_pydicom(layout.path), _pixel_stream(layout) as stream:
        try:
            array = _decode(stream, layout, frame)
        except (RequestError, MemoryError):
            raise
        except Exception as error:  # each decoder has exceptions of its own
            raise RequestError(
                f"{layout.path}: the pixels of frame {frame + 1} cannot be decoded."
            ) from error
    if array.shape != (layout.rows, layout.columns):
        raise RequestError(f"{layout.path}: frame {frame + 1} has not the size its header says.")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _decode(stream: BinaryIO, layout: PixelLayout, frame: int) -> np.ndarray:
    stream.seek(layout.element.offset)
    if layout.is_encapsulated:
        size = layout.rows * layout.columns * max(4, layout.bits_allocated // 8)  # of a decoder
        Budget(layout.path).expand(size, f"frame {frame + 1} of {layout.rows} x {layout.columns}")
        encoded = get_frame(
            stream, frame, number_of_frames=layout.frames, extended_offsets=layout.offset_table
        )
        if layout.syntax == uid.RLELossless:
            dtype = np.dtype(f"{'i' if layout.signed else 'u'}{layout.bits_allocated // 8}")
            return decode_rle(encoded, layout.rows, layout.columns, dtype)
        found = read_codestream(encoded, layout.syntax)
        if (found.rows, found.columns, found.components) != (layout.rows, layout.columns, 1):
            raise RequestError(
                f"{layout.path}: frame {frame + 1} is compressed at another size than "
                f"{layout.rows} x {layout.columns}."
            )
        if found.precision > layout.bits_allocated:
            raise ValueError("more bits than the header allows")
        stream.seek(layout.element.offset)
    return get_decoder(layout.syntax).as_array(
        stream, index=frame, validate=True, raw=True, **_options(layout)
    )[0]


@contextmanager
def _pixel_stream(layout: PixelLayout) -> Iterator[BinaryIO]:
    with open_file(layout.path) as stream:
        inflate_at = layout.element.inflate_at
        yield stream if inflate_at is None else inflate(layout.path, stream, inflate_at)


def _options(layout: PixelLayout) -> dict[str, Any]:
    options: dict[str, Any] = {
        "rows": layout.rows,
        "columns": layout.columns,
        "number_of_frames": layout.frames,
        "samples_per_pixel": 1,
        "photometric_interpretation": layout.photometric,
        "bits_allocated": layout.bits_allocated,
        "bits_stored": layout.bits_stored,
        "pixel_representation": int(layout.signed),
        "pixel_keyword": "PixelData",
        "pixel_vr": layout.element.vr,
        "allow_excess_frames": False,
    }
    if _is_plain(layout):
        options["correct_unused_bits"] = False  # done here, with regard to HighBit
    if layout.offset_table is not None:
        options["extended_offsets"] = layout.offset_table
    preferred = PREFERRED.get(layout.syntax)
    if preferred in get_decoder(layout.syntax).available_plugins:
        options["decoding_plugin"] = preferred
    return options


def _is_plain(layout: PixelLayout) -> bool:
    """Stored bit for bit, so that unused bits may hold anything."""
    return not layout.is_encapsulated or layout.syntax == uid.RLELossless


# DICOM's RLE (PS3.5 Annex G): PackBits runs, one segment per byte of a pixel.
#
# Decoded here because the decoders at hand either panic on a broken frame or let a small one grow
# without limit: this one stops at the size the header says.


def decode_rle(encoded: bytes, rows: int, columns: int, dtype: np.dtype) -> np.ndarray:
    """One frame of one sample per pixel; ValueError when it is damaged."""
    count, *offsets = struct.unpack_from("<16I", encoded.ljust(64, b"\0"))
    if count != dtype.itemsize:
        raise ValueError(f"{count} segments for {dtype.itemsize} bytes per pixel")
    ends = [*offsets[1:count], len(encoded)]
    planes = np.empty((dtype.itemsize, rows * columns), np.uint8)
    for plane, start, end in zip(planes, offsets, ends, strict=False):
        plane[:] = np.frombuffer(unpack_bits(encoded[start:end], plane.size), np.uint8)
    # the most significant byte comes first
    return planes.T.copy().view(dtype.newbyteorder(">")).reshape(rows, columns)


def unpack_bits(segment: bytes, length: int) -> bytearray:
    """Exactly ``length`` bytes; what a padded segment has more is left."""
    result = bytearray()
    at = 0
    while len(result) < length:
        if at + 1 >= len(segment):
            raise ValueError("the segment is too short")
        head = segment[at]
        if head < 128:  # the next head + 1 bytes as they are
            result += segment[at + 1 : at + head + 2]
            at += head + 2
        elif head > 128:  # the next byte, 257 - head times
            result += segment[at + 1 : at + 2] * (257 - head)
            at += 2
        else:
            at += 1
    del result[length:]
    return result


# A compressed frame's own headers, checked before a decoder sees them.
#
# The decoders are C libraries inside this process. Some crash, loop or fill the memory when a
# stream announces another size or depth than the DICOM header, or when its tables are broken; so
# streams that are not what they should be, are cut off, or hold stray markers are refused here.

SOI, EOI, SOS, DHT, DRI, LSE = 0xD8, 0xD9, 0xDA, 0xC4, 0xDD, 0xF8
MOST_TILES, MOST_BOXES = 4096, 100  # of JPEG 2000; a decoder keeps kilobytes for each tile
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
    at = _codestream_at(encoded)
    if encoded[at : at + 4] != b"\xff\x4f\xff\x51" or len(encoded) < at + 45:
        raise ValueError("no JPEG 2000 header")
    sizes = struct.unpack_from(">8IH", encoded, at + 8)  # ISO 15444-1, A.5.1
    width, height, left, top, tile_width, tile_height, tile_left, tile_top, components = sizes
    precision, step_x, step_y = encoded[at + 42 : at + 45]
    if not (tile_width and tile_height) or (step_x, step_y) != (1, 1):
        raise ValueError("no tiles, or samples left out")
    if tile_left > left or tile_top > top or width <= left or height <= top:
        raise ValueError("tiles outside of the picture")
    tiles = -(-(width - tile_left) // tile_width) * -(-(height - tile_top) // tile_height)
    if tiles > MOST_TILES:
        raise ValueError(f"{tiles} tiles")
    return Stream(height - top, width - left, components, (precision & 0x7F) + 1)


def _codestream_at(encoded: bytes) -> int:
    """Where the codestream begins: at once, or in its box (other boxes may hold anything)."""
    at = 0
    for _ in range(MOST_BOXES):
        if encoded[at : at + 4] == b"\xff\x4f\xff\x51":
            return at
        if len(encoded) < at + 16:
            break
        length, kind = struct.unpack_from(">I4s", encoded, at)
        head = 8
        if length == 1:
            length, head = struct.unpack_from(">Q", encoded, at + 8)[0], 16
        if kind == b"jp2c":
            return at + head
        if length < head:
            break
        at += length
    raise ValueError("no JPEG 2000 header")


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
