"""NRRD, attached (``.nrrd``) or with its data in a file beside it (``.nhdr``)."""

from __future__ import annotations

from dataclasses import dataclass
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
    "i1": ("signed char", "int8", "int8_t"),
    "u1": ("uchar", "unsigned char", "uint8", "uint8_t"),
    "i2": ("short", "short int", "signed short", "signed short int", "int16", "int16_t"),
    "u2": ("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"),
    "i4": ("int", "signed int", "int32", "int32_t"),
    "u4": ("uint", "unsigned int", "uint32", "uint32_t"),
    "i8": ("longlong", "long long", "long long int", "signed long long", "int64", "int64_t"),
    "u8": ("ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"),
    "f4": ("float",),
    "f8": ("double",),
}
PACKINGS = {"raw": "raw", "gz": "deflate", "gzip": "deflate"} | dict.fromkeys(
    ("txt", "text", "ascii"), "text"
)
# signs that lead from a space to LPS
SPACES = {
    "left-posterior-superior": (1, 1, 1),
    "lps": (1, 1, 1),
    "right-anterior-superior": (-1, -1, 1),
    "ras": (-1, -1, 1),
    "left-anterior-superior": (1, -1, 1),
    "las": (1, -1, 1),
}
MM_PER_UNIT = {"m": 1000.0, "cm": 10.0, "mm": 1.0, "um": 0.001, "µm": 0.001}


def open_nrrd(path: Path, options: InputOptions) -> ImageDataset:
    fields, end = read_fields(path)
    sizes = whole_numbers(path, "sizes", fields.get("sizes", "").split(), None)
    (dimension,) = whole_numbers(path, "dimension", fields.get("dimension", "").split(), 1)
    if dimension != len(sizes) or not 2 <= dimension <= 5:
        raise RequestError(f"{path} has {dimension} axes: give an image or a volume.")
    layout = _layout(path, fields, sizes)
    stored = _stored(path, fields, layout, end)
    affine, placed, sized = _affine(path, fields, layout)
    return volume_dataset(
        path, options, stored, affine, placed=placed, sized=sized, origin="NRRD header"
    )


def read_fields(path: Path) -> tuple[dict[str, str], int | None]:
    """The fields by name, and where the data begin if they are in the same file."""
    content = read_start(path, MAX_HEADER_BYTES)
    if not content.startswith(b"NRRD000"):
        raise RequestError(f"{path} is not an NRRD file.")
    ends = [(content.find(mark), len(mark)) for mark in (b"\n\n", b"\r\n\r\n")]
    ends = sorted(end for end in ends if end[0] >= 0)
    if ends:
        header, end = content[: ends[0][0]], ends[0][0] + ends[0][1]
    elif file_size(path) > len(content):
        raise RequestError(f"{path}: its header has no end.")
    else:
        header, end = content, len(content)
    fields: dict[str, str] = {}
    for line in header.decode("utf-8", "replace").splitlines()[1:]:
        name, colon, value = line.partition(": ")
        if colon and not line.startswith("#"):
            fields[name.strip().lower()] = value.strip()
    if "data file" not in fields and "datafile" in fields:
        fields["data file"] = fields["datafile"]
    return fields, None if "data file" in fields else end


@dataclass(frozen=True)
class _Layout:
    """Which axes are space: all but a leading pair of complex parts and trailing volumes."""

    sizes: tuple[int, ...]  # of the axes left, space first
    first: int  # number of the first space axis
    count: int  # of space axes
    is_complex: bool


def _layout(path: Path, fields: dict[str, str], sizes: list[int]) -> _Layout:
    kinds = fields.get("kinds", "").lower().split()
    vectors = _vectors(fields)
    spatial = [
        (vectors[n] != "none" if len(vectors) == len(sizes) else True)
        and (kinds[n] in ("domain", "space", "none", "???") if len(kinds) == len(sizes) else True)
        for n in range(len(sizes))
    ]
    is_complex = not spatial[0] and len(kinds) == len(sizes) and kinds[0] == "complex"
    first = int(is_complex and sizes[0] == 2)
    count = next((n for n, s in enumerate(spatial[first:]) if not s), len(sizes) - first)
    if is_complex != bool(first) or count < 2:
        raise RequestError(f"{path} holds colours or vectors: give one number per point.")
    if any(spatial[first + count :]):
        raise RequestError(f"{path}: the order of its axes is not supported.")
    count = min(count, 3)
    shape = tuple(sizes[first : first + count]) + (1,) * (3 - count)
    return _Layout((*shape, *sizes[first + count :]), first, count, bool(first))


def _stored(path: Path, fields: dict[str, str], layout: _Layout, end: int | None) -> StoredVolume:
    kind = fields.get("type", "").lower()
    code = next((code for code, names in TYPES.items() if kind in names), None)
    packing = PACKINGS.get(fields.get("encoding", "").lower())
    if code is None:
        raise RequestError(f"{path}: numbers of type '{kind[:40]}' are not supported.")
    if packing is None:
        raise RequestError(f"{path}: this encoding is not supported; use raw, gzip or ascii.")
    if layout.is_complex:
        if code not in ("f4", "f8") or packing == "text":
            raise RequestError(f"{path}: complex numbers must be stored as float or double.")
        code = {"f4": "c8", "f8": "c16"}[code]
    endian = fields.get("endian", "").lower()
    if endian not in ("little", "big") and code[1] != "1" and packing != "text":
        raise damaged(path, "endian")
    dtype = np.dtype(code).newbyteorder(">" if endian == "big" else "<")
    skips = {
        name: whole_numbers(
            path, name, [fields.get(name, fields.get(name.replace(" ", ""), "0"))], 1
        )[0]
        for name in ("line skip", "byte skip")
    }
    data = path if end is not None else _data_file(path, fields["data file"])
    offset = (end or 0) + _line_skip(data, end or 0, skips["line skip"])
    skip = skips["byte skip"]
    if skip == -1 and packing == "raw":  # the data are what the file ends with
        offset, skip = file_size(data) - int(np.prod(layout.sizes)) * dtype.itemsize, 0
    return StoredVolume(data, dtype, layout.sizes, offset=offset, skip=skip, packing=packing)


def _data_file(path: Path, value: str) -> Path:
    if value.split(" ")[0] == "LIST" or "%" in value:
        raise RequestError(f"{path} is spread over several data files, which is not supported.")
    return beside(path, value.removeprefix("./"))


def _line_skip(path: Path, start: int, lines: int) -> int:
    if not lines:
        return 0
    content, position = read_start(path, start + MAX_HEADER_BYTES)[start:], 0
    for _ in range(lines):
        position = content.find(b"\n", position) + 1
        if position == 0:
            raise damaged(path, "line skip")
    return position


def _vectors(fields: dict[str, str]) -> list[str]:
    """'(1,0,0) none (0, 1, 0)' in its parts."""
    text = fields.get("space directions", "").lower().replace("(", " (").replace(")", ") ")
    parts, inside = [], ""
    for word in text.split():
        inside += word
        if not inside.startswith("(") or inside.endswith(")"):
            parts.append(inside)
            inside = ""
    return parts


def _affine(path: Path, fields: dict[str, str], layout: _Layout) -> tuple[np.ndarray, bool, bool]:
    """Voxel to LPS mm, whether it places the image, and whether it has a pixel size."""
    used = slice(layout.first, layout.first + layout.count)
    vectors = _vectors(fields)[used]
    if len(vectors) < 2:
        words = fields.get("spacings", "").split()[used]
        if len(words) < 2:
            return np.eye(4), False, False
        steps = numbers(path, "spacings", words, len(words))
        return spacing_only(steps), False, True
    axes = [
        numbers(path, "space directions", v.strip("()").split(","), v.count(",") + 1)
        for v in vectors
    ]
    units = fields.get("space units", "").replace('"', " ").split()
    scale = MM_PER_UNIT.get(units[0], 1.0) if units else 1.0
    lengths = [scale * float(np.linalg.norm(axis)) for axis in axes]
    signs = SPACES.get(fields.get("space", "").lower())
    if signs is None or any(len(axis) != 3 for axis in axes):
        return spacing_only(lengths), False, True
    affine = np.eye(4)
    affine[:3, : len(axes)] = np.array(axes).T
    if len(axes) == 2:  # a single slice, one mm thick
        normal = np.cross(axes[0], axes[1])
        affine[:3, 2] = normal / max(float(np.linalg.norm(normal)), 1e-30) / scale
    origin = fields.get("space origin", "").strip("() ")
    if origin:
        affine[:3, 3] = numbers(path, "space origin", origin.split(","), 3)
    affine[:3] *= scale
    return np.diag([*signs, 1]) @ affine, bool(origin), True
