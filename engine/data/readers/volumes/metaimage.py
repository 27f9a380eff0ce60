"""MetaImage: ``.mha`` in one file, ``.mhd`` with its data in a file beside it.

World coordinates are LPS, as ITK writes and reads them; row n of TransformMatrix is the
direction of axis n.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.data.dataset import ImageDataset
from engine.data.readers.volumes.stored_volume import StoredVolume, beside, file_size, read_start
from engine.data.readers.volumes.volume import (
    MAX_HEADER_BYTES,
    damaged,
    numbers,
    spacing_only,
    volume_dataset,
    whole_numbers,
)
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
# the same entry under its several names, the preferred one first
MATRIX = ("TransformMatrix", "Rotation", "Orientation")
OFFSET = ("Offset", "Position", "Origin")
BIG_ENDIAN = ("BinaryDataByteOrderMSB", "ElementByteOrderMSB")


def open_metaimage(path: Path, options: InputOptions) -> ImageDataset:
    fields, end = read_fields(path)
    (axes,) = whole_numbers(path, "NDims", fields.get("NDims", "").split(), 1)
    if not 2 <= axes <= 4:
        raise RequestError(f"{path} has {axes} axes: give an image or a volume.")
    if fields.get("ElementNumberOfChannels", "1") != "1":
        raise RequestError(f"{path} holds colours or vectors: give one number per point.")
    sizes = whole_numbers(path, "DimSize", fields.get("DimSize", "").split(), axes)
    stored = _stored(path, fields, (*sizes, 1)[: max(axes, 3)], end)
    affine, placed, sized = _affine(path, fields, axes)
    return volume_dataset(
        path, options, stored, affine, placed=placed, sized=sized, origin="MetaImage header"
    )


def read_fields(path: Path) -> tuple[dict[str, str], int]:
    """The entries by name and the end of the header; ElementDataFile is always the last."""
    content = read_start(path, MAX_HEADER_BYTES)
    fields: dict[str, str] = {}
    position = 0
    while "ElementDataFile" not in fields:
        end = content.find(b"\n", position)
        line = content[position : end if end >= 0 else len(content)].decode("utf-8", "replace")
        name, equals, value = line.partition("=")
        if (not equals and line.strip()) or len(fields) > 1000 or (end < 0 and not equals):
            raise RequestError(f"{path} is not a MetaImage file.")
        if equals:
            fields[name.strip()] = value.strip()
        position = len(content) if end < 0 else end + 1
    if fields.get("ObjectType", "Image").lower() != "image":
        raise RequestError(f"{path} is not an image.")
    return fields, position


def _first(fields: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((fields[name] for name in names if name in fields), None)


def _yes(text: str | None) -> bool:
    return (text or "").lower() in ("true", "t", "yes", "y", "1")


def _stored(path: Path, fields: dict[str, str], shape: tuple[int, ...], end: int) -> StoredVolume:
    code = TYPES.get(fields.get("ElementType", ""))
    if code is None:
        raise RequestError(f"{path}: this type of numbers is not supported (ElementType).")
    dtype = np.dtype(code).newbyteorder(">" if _yes(_first(fields, BIG_ENDIAN)) else "<")
    packing = "deflate" if _yes(fields.get("CompressedData")) else "raw"
    if not _yes(fields.get("BinaryData", "True")):
        packing = "text"
    name = fields["ElementDataFile"]
    if name.upper() == "LOCAL":
        data, offset = path, end
    elif name.upper().startswith("LIST") or "%" in name:
        raise RequestError(f"{path} is spread over several data files, which is not supported.")
    else:
        data, offset = beside(path, name.removeprefix("./")), 0
        (skip,) = whole_numbers(path, "HeaderSize", [fields.get("HeaderSize", "0")], 1)
        if skip == -1 and packing == "raw":  # the data are what the file ends with
            skip = file_size(data) - int(np.prod(shape)) * dtype.itemsize
        offset = skip
    return StoredVolume(data, dtype, shape, offset=offset, packing=packing)


def _affine(path: Path, fields: dict[str, str], axes: int) -> tuple[np.ndarray, bool, bool]:
    """Voxel to LPS mm, whether it places the image, and whether it has a pixel size."""
    spacing = _first(fields, ("ElementSpacing", "ElementSize"))
    matrix, offset = _first(fields, MATRIX), _first(fields, OFFSET)
    steps = [1.0] * axes
    if spacing is not None:
        steps = numbers(path, "ElementSpacing", spacing.split(), axes)
    if axes == 2 or matrix is None or offset is None:
        return spacing_only(steps), False, spacing is not None
    directions = np.array(numbers(path, MATRIX[0], matrix.split(), axes * axes))
    position = numbers(path, OFFSET[0], offset.split(), axes)
    directions = directions.reshape(axes, axes)[:3, :3]
    if min(steps[:3]) <= 0:
        raise damaged(path, "ElementSpacing")
    affine = np.eye(4)
    affine[:3, :3] = directions.T * steps[:3]
    affine[:3, 3] = position[:3]
    return affine, True, spacing is not None
