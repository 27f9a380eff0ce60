"""FastMRI's HDF5: ``kspace`` [slice, (coil,) read, phase], a mask in test files, an XML header."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from engine.data.kspace.dataset import KspaceDataset
from engine.data.kspace.grid import MAX_SLICE_BYTES, GridPlan, KspaceSlice, Plane, plan_grid
from engine.data.readers.hdf5.safe import array, open_h5, read
from engine.data.readers.kspace.mrd_header import Encoding, read_header
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HEADER = "ismrmrd_header"


def open_fastmri(path: Path, options: InputOptions) -> KspaceDataset:
    with open_h5(path) as file:
        kspace = array(file, "kspace")
        if kspace is None:
            raise RequestError(f"{path} holds no 'kspace' array.")
        shape = _checked_shape(kspace, path)
        count, coils, height, width = shape
        header = read_header(file, HEADER, path)
        encoding = header.encodings[0] if header and header.encodings else None
        own_mask = _stored_mask(file, width, path)
        names = set(file.keys())  # attributes are left alone: one of them is the patient's number
    plan = plan_grid(
        (height, width),
        encoding.encoded if encoding else None,
        encoding.recon if encoding else None,
        options,
    )
    dataset = KspaceDataset(
        modality="MR",
        description=path.name,
        count=count,
        image_size=(plan.rows, plan.columns),
        pixel_mm=plan.pixel_mm,
        files=(path,),
        facts=plan.facts,
        warnings=plan.warnings,
        coils=coils,
        coil_use=options.coil_use or "sense",
        crop_size=plan.crop,
    )
    sampled = _measured_lines(dataset, own_mask, encoding, width)
    dataset.load_slice = _loader(path, plan, sampled)
    dataset.add_fact("format", "fastMRI HDF5", "kspace array")
    dataset.add_fact("coils", coils, "shape of kspace")
    for name in sorted(names & {"reconstruction_rss", "reconstruction_esc"}):
        dataset.add_fact(name, "present; not used", "the file")
    if encoding is None:
        dataset.warn(
            "The file has no header: its field of view and readout oversampling are unknown; "
            "⟦size⟧ N keeps the middle N rows."
        )
    return dataset


def _checked_shape(kspace: h5py.Dataset, path: Path) -> tuple[int, int, int, int]:
    if kspace.dtype.kind != "c" or kspace.ndim not in (3, 4) or 0 in kspace.shape:
        raise RequestError(
            f"{path}: 'kspace' is {kspace.dtype} {kspace.shape}; fastMRI files hold complex "
            "[slice, read, phase] or [slice, coil, read, phase]."
        )
    count, *middle, height, width = kspace.shape
    coils = middle[0] if middle else 1
    if coils * height * width * 8 > MAX_SLICE_BYTES:
        raise RequestError(f"{path}: slices of {kspace.shape[1:]} samples are too large.")
    return count, coils, height, width


def _stored_mask(file: h5py.File, width: int, path: Path) -> Plane | None:
    stored = array(file, "mask")
    if stored is None:
        return None
    if stored.size != width:
        raise RequestError(f"{path}: 'mask' has {stored.size} values for {width} lines.")
    values = read(stored).reshape(-1)
    if not np.isin(values, (0, 1)).all():
        raise RequestError(f"{path}: 'mask' holds other values than 0 and 1.")
    return values.astype(bool)


def _measured_lines(
    dataset: KspaceDataset, own_mask: Plane | None, encoding: Encoding | None, width: int
) -> Plane:
    """The file's mask, without the columns that were only filled up with zeros."""
    sampled = np.ones(width, dtype=bool) if own_mask is None else own_mask.copy()
    dataset.add_fact(
        "sampling", "all lines" if own_mask is None else "undersampled", "mask in the file"
    )
    limits = encoding.step_1 if encoding else None
    if encoding is None or limits is None:
        return sampled
    first = encoding.encoded.matrix[1] // 2 - limits.centre
    last = first + limits.maximum + 1
    if encoding.encoded.matrix[1] != width or not 0 <= first < last <= width:
        dataset.warnings.append(
            "The header's encoding limits do not fit the data; no padding columns are assumed."
        )
        return sampled
    sampled[:first] = False
    sampled[last:] = False
    if first or last < width:
        dataset.add_fact(
            "padding columns", f"{first} left, {width - last} right", "encoding limits"
        )
    return sampled


def _loader(path: Path, plan: GridPlan, sampled: Plane) -> Callable[[int], KspaceSlice]:
    def load(number: int) -> KspaceSlice:
        with open_h5(path) as file:
            kspace = array(file, "kspace")
            if kspace is None or not 0 <= number < len(kspace):
                raise RequestError(f"{path} changed while it was open.")
            values = read(kspace, number).astype(np.complex64)
        values = values.reshape(-1, *plan.shape) * sampled
        return KspaceSlice(plan.apply(values), plan.apply_mask(sampled))

    return load
