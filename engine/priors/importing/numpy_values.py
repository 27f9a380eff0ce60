"""Numbers that numpy wrote into a pickle, read from their bytes without numpy."""

from __future__ import annotations

import struct
from typing import Any

from engine.priors.importing.safe_pickle import Record
from engine.spec.errors import RequestError

DTYPE = "dtype"
NUMBERS = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "b1": "?"}


def _numpy_dtype(code: Any, *flags: Any) -> Record:
    if type(code) is not str or code not in NUMBERS:
        raise RequestError("it holds a numpy value that is not a plain number")
    return Record(DTYPE, code)


def _numpy_scalar(dtype: Any, content: Any) -> float | int | bool:
    """A number from its bytes; the dtype's state is (version, byte order, ...)."""
    if type(dtype) is not Record or dtype.kind != DTYPE or type(content) is not bytes:
        raise RequestError("it holds a numpy value that is not a plain number")
    order = dtype.state[1] if type(dtype.state) is tuple and len(dtype.state) > 1 else "<"
    form = (">" if order == ">" else "<") + NUMBERS[dtype.made]
    if len(content) != struct.calcsize(form):
        raise RequestError("it holds a numpy number of the wrong length")
    return struct.unpack(form, content)[0]


NUMPY_NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _numpy_dtype,
    ("numpy.core.multiarray", "scalar"): _numpy_scalar,
    ("numpy._core.multiarray", "scalar"): _numpy_scalar,
}
