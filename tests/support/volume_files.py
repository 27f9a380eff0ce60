"""NIfTI, NRRD and MetaImage files written from their published layouts, for the readers' tests.

Every writer takes ``volume[i, j, k]`` (i fastest in the file) and an affine from (i, j, k) to
LPS mm.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np

NIFTI_CODES = {"uint8": 2, "int16": 4, "int32": 8, "float32": 16, "complex64": 32, "float64": 64}
NRRD_TYPES = {"uint8": "uchar", "int16": "short", "float32": "float", "float64": "double"}
MET_TYPES = {"uint8": "MET_UCHAR", "int16": "MET_SHORT", "float32": "MET_FLOAT"}


def nifti_bytes(volume, affine, *, slope=0.0, inter=0.0, big=False, dim=None, code=None, units=2):
    """NIfTI-1 in one piece, with an sform; ``dim`` and ``code`` allow lies."""
    e = ">" if big else "<"
    sizes = dim or (volume.ndim, *volume.shape, *(1,) * (7 - volume.ndim))
    header = bytearray(352)
    struct.pack_into(f"{e}i", header, 0, 348)
    struct.pack_into(f"{e}8h", header, 40, *sizes)
    datatype = NIFTI_CODES[volume.dtype.name] if code is None else code
    struct.pack_into(f"{e}2h", header, 70, datatype, 8 * volume.dtype.itemsize)
    ras = np.diag([-1, -1, 1, 1]) @ affine
    spacing = np.linalg.norm(ras[:3, :3], axis=0)
    struct.pack_into(f"{e}8f", header, 76, 1, *spacing, 1, 1, 1, 1)
    struct.pack_into(f"{e}3f", header, 108, 352, slope, inter)
    header[123] = units
    struct.pack_into(f"{e}2h", header, 252, 0, 1)
    struct.pack_into(f"{e}12f", header, 280, *ras[:3].ravel())
    header[344:348] = b"n+1\0"
    return bytes(header) + volume.astype(volume.dtype.newbyteorder(e)).tobytes(order="F")


def write_nifti(path: Path, volume, affine, **options):
    content = nifti_bytes(volume, affine, **options)
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


def write_nrrd(
    path: Path, volume, affine, *, encoding="raw", space="LPS", big=False, detached=None
):
    signs = {"LPS": (1, 1, 1), "right-anterior-superior": (-1, -1, 1), "LAS": (1, -1, 1)}[space]
    turned = np.diag([*signs, 1]) @ affine
    vector = "({:.17g},{:.17g},{:.17g})".format
    lines = [
        "NRRD0004",
        "# written for a test",
        f"type: {NRRD_TYPES[volume.dtype.name]}",
        "dimension: 3",
        f"space: {space}",
        "sizes: {} {} {}".format(*volume.shape),
        "space directions: " + " ".join(vector(*turned[:3, n]) for n in range(3)),
        "space origin: " + vector(*turned[:3, 3]),
        "kinds: domain domain domain",
        f"endian: {'big' if big else 'little'}",
        f"encoding: {encoding}",
        "some key:=some value: more",
    ]
    if detached:
        lines.append(f"data file: {detached}")
    flat = volume.astype(volume.dtype.newbyteorder(">" if big else "<"))
    data = flat.tobytes(order="F")
    if encoding == "gzip":
        data = gzip.compress(data)
    elif encoding == "ascii":
        data = " ".join(repr(v.item()) for v in volume.ravel(order="F")).encode()
    header = "\n".join(lines).encode() + b"\n"
    if detached:
        path.write_bytes(header)
        (path.parent / detached).write_bytes(data)
    else:
        path.write_bytes(header + b"\n" + data)
    return path


def write_metaimage(path: Path, volume, affine, *, packed=False, big=False, detached=None):
    spacing = np.linalg.norm(affine[:3, :3], axis=0)
    data = volume.astype(volume.dtype.newbyteorder(">" if big else "<")).tobytes(order="F")
    data = zlib.compress(data) if packed else data
    numbers = lambda values: " ".join(f"{v:.17g}" for v in values)  # noqa: E731
    lines = [
        "ObjectType = Image",
        "NDims = 3",
        "BinaryData = True",
        f"BinaryDataByteOrderMSB = {big}",
        f"CompressedData = {packed}",
        *([f"CompressedDataSize = {len(data)}"] if packed else []),
        "TransformMatrix = " + numbers((affine[:3, :3] / spacing).T.ravel()),
        "Offset = " + numbers(affine[:3, 3]),
        "CenterOfRotation = 0 0 0",
        "ElementSpacing = " + numbers(spacing),
        "DimSize = {} {} {}".format(*volume.shape),
        f"ElementType = {MET_TYPES[volume.dtype.name]}",
        f"ElementDataFile = {detached or 'LOCAL'}",
    ]
    header = "\n".join(lines).encode() + b"\n"
    if detached:
        path.write_bytes(header)
        (path.parent / detached).write_bytes(data)
    else:
        path.write_bytes(header + data)
    return path


def oblique(spacing=(0.8, 1.3, 2.5), origin=(-31.0, 12.5, 140.0), degrees=(11.0, -7.0, 19.0)):
    """An affine to LPS mm: turned about all three axes, anisotropic."""
    matrix = np.eye(3)
    for axis, angle in enumerate(np.deg2rad(degrees)):
        c, s = np.cos(angle), np.sin(angle)
        turn = np.eye(3)
        a, b = [n for n in range(3) if n != axis]
        turn[a, a] = turn[b, b] = c
        turn[a, b], turn[b, a] = -s, s
        matrix = matrix @ turn
    affine = np.eye(4)
    affine[:3, :3] = matrix * spacing
    affine[:3, 3] = origin
    return affine


def world_of(dataset, number, row, column):
    """Where a pixel of a dataset lies, from its placements alone."""
    p = dataset.placements[number]
    along_row, along_column = np.array(p.along_row), np.array(p.along_column)
    rows, columns = p.spacing_mm
    return np.array(p.position) + column * columns * along_row + row * rows * along_column


def assert_every_voxel_is_in_its_place(dataset, volume, affine, value=lambda v: v, atol=1e-4):
    """Each shown pixel, traced back through the affine, is the stored voxel's value."""
    inverse = np.linalg.inv(affine)
    rows, columns = dataset.image_size
    assert rows * columns * len(dataset) == volume.size
    for number in range(len(dataset)):
        shown = dataset.read(number)
        assert shown.shape == dataset.image_size
        for row in range(rows):
            for column in range(columns):
                index = inverse @ [*world_of(dataset, number, row, column), 1]
                nearest = np.round(index[:3]).astype(int)
                np.testing.assert_allclose(index[:3], nearest, atol=atol)
                np.testing.assert_allclose(shown[row, column], value(volume[tuple(nearest)]))
