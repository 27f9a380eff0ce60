"""NIfTI-1: float32 HU or magnitude, voxel order (column, row, slice), affine to RAS mm."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import BinaryIO

import numpy as np
from nibabel.nifti1 import Nifti1Header
from numpy.lib import format as npy

from engine.data.images.orientation import (
    RIGHT_ANGLE,
    affine_of,
    flip_lps_ras,
)
from engine.data.readers.volumes.nifti import DESCRIPTIONS
from engine.export.outputs import Result, check_finite
from engine.files.atomic import write_atomic
from engine.spec.errors import RequestError

MU_DESCRIPTION = "Dualscope; CT, attenuation in 1/mm"  # no HU: read with --unit mu
SCANNER, DATA_OFFSET, MAX_SIDE = 1, 352, 32767


def write_nifti(path: Path, result: Result) -> list[str]:
    values = result.values()
    check_finite(values)
    if max(values.shape) > MAX_SIDE:
        raise RequestError(f"{path}: NIfTI cannot hold {values.shape} points; write .h5 or .npy.")
    affine, notes, known = _affine(result)
    header = Nifti1Header()
    header.set_data_dtype(np.float32)
    header.set_data_shape(values.shape[::-1])
    header.set_xyzt_units("mm")
    described = MU_DESCRIPTION if result.is_mu else DESCRIPTIONS[result.problem.modality]
    header["descrip"] = described.encode()
    header["vox_offset"] = DATA_OFFSET
    header["magic"] = b"n+1"
    header["scl_slope"], header["scl_inter"] = 1, 0
    header["pixdim"][1:4] = np.linalg.norm(affine[:3, :3], axis=0)
    code = SCANNER if known else 0
    header.set_sform(affine, code=code)
    if _is_sheared(affine):  # a quaternion cannot say it, and must not say otherwise
        header.set_qform(None, code=0)
        notes.append("The slices are stacked askew (gantry tilt): the affine is in the sform only.")
    else:
        header.set_qform(affine, code=code)

    def write(stream: BinaryIO) -> None:
        stream.write(header.binaryblock)
        stream.write(bytes(DATA_OFFSET - len(header.binaryblock)))
        for page in values:  # [slice, row, column] in memory is (column, row, slice) for NIfTI
            numbers = result.exported(page)
            stream.write(np.ascontiguousarray(numbers, header.get_data_dtype()).tobytes())

    def write_packed(stream: BinaryIO) -> None:
        # no name and no time within: the same result gives the same file
        with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed:
            buffered = io.BufferedWriter(packed, 1 << 20)
            write(buffered)
            buffered.flush()
            buffered.detach()

    write_atomic(path, write_packed if path.name.lower().endswith(".gz") else write)
    return [f"{path.name}: {note}" for note in notes]


def _affine(result: Result) -> tuple[np.ndarray, list[str], bool]:
    """Voxel to RAS mm, notes, and whether the position in the patient is known."""
    placements = result.placements
    if placements is not None:
        affine, notes = affine_of(placements)
        return flip_lps_ras(affine), notes, True
    pixel_mm = result.pixel_mm
    rows, columns = pixel_mm or (1.0, 1.0)
    size = "its pixel size" if pixel_mm else "pixels of 1 mm"
    apart = result.slice_mm or 1.0
    note = (
        f"the input says nothing of its orientation; {size} and slices of {apart:g} mm were "
        "written."
    )
    return flip_lps_ras(np.diag([columns, rows, apart, 1.0])), [note], False


def _is_sheared(affine: np.ndarray) -> bool:
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    return bool(np.abs(axes.T @ axes - np.eye(3)).max() > RIGHT_ANGLE)


def write_npy(path: Path, result: Result) -> None:
    """``[H, W]``, or ``[N, H, W]`` of several slices."""
    values = result.values()
    check_finite(values)

    def write(stream: BinaryIO) -> None:
        # not np.save: its error on a full disk does not say what is wrong
        whole = values[0] if len(values) == 1 else values
        npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(whole))
        for page in values:
            stream.write(result.exported(page).tobytes())

    write_atomic(path, write)
