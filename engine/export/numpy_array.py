"""The image as a NumPy array: float32; HU, attenuation in 1/mm, or the input's MR scale."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from numpy.lib import format as npy

from engine.export.outputs import Result, check_finite
from engine.files.atomic import write_atomic


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
