"""MRC tilt series (MRC2014 and IMOD's dialect): one section per view."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np

from engine.data.readers.file_array import FileArray
from engine.data.readers.sinogram_array import open_sinogram_array
from engine.data.readers.volumes.slices import by_slices
from engine.data.sidecar import describe
from engine.data.sinogram.dataset import SinogramDataset
from engine.data.sinogram.scan_geometry import Scan
from engine.files.budget import read_small
from engine.files.path_safety import reading
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

HEADER = 1024
MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
IMOD_STAMP, SIGNED_BYTES = 1146047817, 1
AXES = "view,slice,detector"
ANGSTROM_MM = 1e-7
MAX_TILT_BYTES = 1 << 20


def open_mrc(path: Path, options: InputOptions) -> SinogramDataset:
    stack, pitch_mm = _sections(path)
    described = describe(path, options)
    axes = described.options.axes or AXES
    _, views, detectors = by_slices(stack, path.name, ("slice", "view", "detector"), axes).shape
    tilts = _tilt_file(path)
    scan = Scan(
        views=views,
        detectors=detectors,
        angles_deg=None if tilts is None else _tilts(tilts, views),
        kind="parallel",
        pitch_mm=pitch_mm,
        origin="MRC (parallel beam)" if tilts is None else f"MRC and {tilts.name}",
    )
    files = (path,) if tilts is None else (path, tilts)
    return open_sinogram_array(
        stack, path, options, described, partial(open_mrc, path), AXES, files, scan, True
    )


def _sections(path: Path) -> tuple[FileArray, float | None]:
    """The sections ``[z, y, x]``, read when asked for, and the pixel size."""
    with reading(path):
        size = path.stat().st_size
        with path.open("rb") as stream:
            header = stream.read(HEADER)
    if len(header) < HEADER:
        raise RequestError(f"{path.name} is too short to be an MRC file.")
    order = _byte_order(header)
    words = np.frombuffer(header, order + "i4")
    nx, ny, nz, mode = (int(n) for n in words[:4])
    if mode not in MODES:
        raise RequestError(f"{path.name}: MRC mode {mode} is not supported (0, 1, 2, 6, 12 are).")
    kind = MODES[mode]
    if mode == 0 and words[38] == IMOD_STAMP and not words[39] & SIGNED_BYTES:
        kind = "u1"
    dtype = np.dtype(order + kind)
    start = HEADER + int(words[23])  # the extended header lies between
    if min(nx, ny, nz) < 1 or words[23] < 0 or start + nx * ny * nz * dtype.itemsize > size:
        raise RequestError(
            f"{path.name} is damaged or cut short: its header says {nx} x {ny} x {nz} values."
        )
    columns = int(words[7])
    width = float(np.frombuffer(header, order + "f4")[10])
    usable = columns > 0 and math.isfinite(width) and width > 0
    pitch_mm = width / columns * ANGSTROM_MM if usable else None
    return FileArray(path, dtype, (nz, ny, nx), start), pitch_mm


def _byte_order(header: bytes) -> str:
    """By the machine stamp; files without one by whether the mode makes sense."""
    if header[212] == 0x44:
        return "<"
    if header[212] == 0x11:
        return ">"
    return "<" if int.from_bytes(header[12:16], "little") in MODES else ">"


def _tilt_file(path: Path) -> Path | None:
    for suffix in (".tlt", ".rawtlt"):
        beside = path.with_suffix(suffix)
        if beside.is_file():
            return beside
    return None


def _tilts(path: Path, views: int) -> np.ndarray:
    """One angle per line, in degrees."""
    try:
        content = read_small(path, MAX_TILT_BYTES, "a list of tilt angles")
        words = content.decode("ascii", "replace").split()
        angles = np.array([float(word) for word in words])
    except OSError as error:
        raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError:
        raise RequestError(f"{path.name} is not a list of tilt angles.") from None
    if angles.size != views:
        raise RequestError(f"{path.name} has {angles.size} tilt angles for {views} views.")
    return angles
