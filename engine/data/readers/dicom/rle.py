"""DICOM's RLE (PS3.5 Annex G): PackBits runs, one segment per byte of a pixel.

Decoded here because the decoders at hand either panic on a broken frame or let a small one grow
without limit: this one stops at the size the header says.
"""

from __future__ import annotations

import struct

import numpy as np


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
