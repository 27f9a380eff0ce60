"""NIfTI-1 and NIfTI-2 in one file, ``.nii`` or ``.nii.gz``.

nibabel reads the header; the numbers are read here, slice by slice, with their size checked.
NIfTI has no modality: the person says it, unless our own writer left a note in ``descrip``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from nibabel.nifti1 import Nifti1Header
from nibabel.nifti2 import Nifti2Header
from nibabel.spatialimages import HeaderDataError

from engine.data.dataset import ImageDataset
from engine.data.images.orientation import flip_lps_ras
from engine.data.readers.file_array import Inflated
from engine.data.readers.volumes.stored_volume import StoredVolume, read_start
from engine.data.readers.volumes.volume import volume_dataset
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

GZIP_MAGIC = b"\x1f\x8b"
HEADER_BYTES = {348: Nifti1Header, 540: Nifti2Header}
MAGICS = (b"n+1", b"n+2")
MM_PER_UNIT = {1: 1000.0, 2: 1.0, 3: 0.001}
# what writers/nifti.py writes into descrip, and what it means
DESCRIPTIONS = {"CT": "Dualscope; CT in HU", "MR": "Dualscope; MR magnitude"}


def open_nifti(path: Path, options: InputOptions) -> ImageDataset:
    start = read_start(path, 2)
    packed = start == GZIP_MAGIC
    header = read_header(path, packed)
    try:
        if not 1 <= int(header["dim"][0]) <= 7:
            raise ValueError
        shape = tuple(int(n) for n in header.get_data_shape())
        dtype = header.get_data_dtype()
        slope, inter = header.get_slope_inter()
        affine = flip_lps_ras(header.get_best_affine())
        offset = int(header["vox_offset"])
        placed = int(header["sform_code"]) > 0 or int(header["qform_code"]) > 0
        units = int(header["xyzt_units"]) % 8
        description = bytes(header["descrip"].tobytes()).split(b"\0")[0].decode("ascii", "replace")
    except (HeaderDataError, ValueError, KeyError, OverflowError, TypeError) as error:
        raise RequestError(f"{path}: its NIfTI header is damaged.") from error
    if dtype.kind not in "iufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise RequestError(f"{path}: colour or {dtype} points are not supported.")
    shape = shape + (1,) * (3 - len(shape))
    stored = StoredVolume(
        path,
        dtype,
        shape,
        offset=0 if packed else offset,
        skip=offset if packed else 0,
        packing="deflate" if packed else "raw",
    )
    affine[:3] *= MM_PER_UNIT.get(units, 1.0)
    named = [modality for modality, text in DESCRIPTIONS.items() if text == description]
    dataset = volume_dataset(
        path,
        options,
        stored,
        affine,
        placed=placed,
        origin="NIfTI header",
        slope=1.0 if slope is None else slope,
        inter=0.0 if inter is None else inter,
        own=(named[0], "descrip of the header") if named else None,
    )
    if units not in MM_PER_UNIT:
        dataset.add_fact("unit of length", "mm", "assumed: the header names none")
    return dataset


def read_header(path: Path, packed: bool) -> Nifti1Header | Nifti2Header:
    block = _first_bytes(path, packed, 348)
    size = min(int.from_bytes(block[:4], "little"), int.from_bytes(block[:4], "big"))
    if size not in HEADER_BYTES:
        raise RequestError(f"{path} is not a NIfTI file.")
    if size > len(block):
        block = _first_bytes(path, packed, size)
    magic = block[344:347] if size == 348 else block[4:7]
    if magic not in MAGICS:
        raise RequestError(
            f"{path} is not a NIfTI file in one piece; pairs of .hdr and .img are not supported."
        )
    try:
        with np.errstate(all="ignore"):
            return HEADER_BYTES[size](block, check=False)
    except Exception as error:  # nibabel has no common base for what it finds wrong
        raise RequestError(f"{path}: its NIfTI header is damaged.") from error


def _first_bytes(path: Path, packed: bool, count: int) -> bytes:
    block = Inflated(path).read(0, count) if packed else read_start(path, count)
    if len(block) < count:
        raise RequestError(f"{path} is cut off within its header.")
    return block
