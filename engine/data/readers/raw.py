"""Raw numbers without a header: a sidecar says shape, type and byte order."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np

from engine.data.dataset import Dataset
from engine.data.readers.arrays import open_array
from engine.data.readers.file_array import FileArray
from engine.data.sidecar import describe
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions


def open_raw(path: Path, options: InputOptions) -> Dataset:
    described = describe(path, options)
    if described.shape is None:
        raise RequestError(
            f"{path.name} has no header: put a {path.stem}.json beside it that gives its shape "
            "(and dtype, byte_order)."
        )
    dtype = np.dtype(described.dtype)
    dtype = dtype.newbyteorder("<" if described.byte_order == "little" else ">")
    wanted = math.prod(described.shape) * dtype.itemsize
    try:
        size = path.stat().st_size
        if size != wanted:
            raise RequestError(
                f"{path.name} has {size} bytes, and {described.shape} values of "
                f"{described.dtype} are {wanted}."
            )
    except OSError as error:
        raise RequestError(f"{path} cannot be read.") from error
    array = FileArray(path, dtype, described.shape)
    return open_array(array, path, options, partial(open_raw, path))
