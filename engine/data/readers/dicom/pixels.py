"""Numbers of one slice: decode one frame, leave out unused bits, rescale, fill the padding.

DICOM's photometric interpretation MONOCHROME1 tells how to show an image (small values white).
It does not change HU, so a CT slice is never inverted; an unsigned MR magnitude is, because only
then is the background dark, as the signal was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from pydicom import uid
from pydicom.encaps import get_frame
from pydicom.pixels import get_decoder

from engine.data.images.air import AIR_HU
from engine.data.readers.dicom.codestream import read_codestream
from engine.data.readers.dicom.image import PixelLayout, SliceImage
from engine.data.readers.dicom.rle import decode_rle
from engine.data.readers.dicom.scan import inflate, open_file, quiet_pydicom
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
