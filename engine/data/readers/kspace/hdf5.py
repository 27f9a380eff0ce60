"""K-space in HDF5: fastMRI's layout or ISMRMRD's, told apart by what is inside."""

from __future__ import annotations

from pathlib import Path

import h5py

from engine.data.dataset import Dataset
from engine.data.readers.hdf5.safe import item, open_h5
from engine.data.readers.kspace.fastmri import open_fastmri
from engine.data.readers.kspace.ismrmrd import groups_of, open_ismrmrd
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions


def is_kspace_h5(file: h5py.File) -> bool:
    """Whether an open file is one that `open_kspace_h5` reads."""
    return isinstance(item(file, "kspace"), h5py.Dataset) or bool(groups_of(file))


def open_kspace_h5(path: Path, options: InputOptions) -> Dataset:
    with open_h5(path) as file:
        is_fastmri = isinstance(item(file, "kspace"), h5py.Dataset)
        is_ismrmrd = bool(groups_of(file))
    if options.axes is not None and (is_fastmri or is_ismrmrd):
        raise RequestError(f"{path}: the format fixes its axes; --axes does not apply.")
    if is_fastmri:
        return open_fastmri(path, options)
    if is_ismrmrd:
        return open_ismrmrd(path, options)
    raise RequestError(
        f"{path} is neither a fastMRI file (no 'kspace' array) nor an ISMRMRD one "
        "(no group with 'xml' and 'data')."
    )
