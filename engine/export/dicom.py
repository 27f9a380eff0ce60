"""Writing reconstructions as DICOM: one file for a slice, a folder for a series.

Pixels are signed 16 bit. CT is stored in whole HU (slope 1, intercept 0), so a value is off by
at most 0.5 HU. MR has no unit, and the MR image has no rescale attributes: the source's own
scale is kept when 16 bits hold it well, otherwise the magnitude is multiplied by a power of
two, which the derivation text names.
"""

from __future__ import annotations

import contextlib
import glob
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydicom.dataset import Dataset

from engine.export.dicom_copy import number_of, write_dataset
from engine.export.dicom_deidentify import UidMap
from engine.export.dicom_header import DerivedSeries, decimal
from engine.export.outputs import default_window, linear_window
from engine.files.atomic import partial_prefix
from engine.files.file_lock import ROOM_LOCK, abandoned, lock_file
from engine.spec.errors import DualscopeError, RequestError

if TYPE_CHECKING:
    from engine.export.outputs import Result

LOWEST, HIGHEST = -32768, 32767
FEWEST_LEVELS = 1023  # of an MR image: fewer would show as steps
SLICE_NAME = "IM{:04d}.dcm"
OUR_NAMES = re.compile(r"IM\d{4,}\.dcm")


def write_dicom(path: Path, result: Result, uids: UidMap | None = None) -> list[str]:
    """One slice as one file; returns what the person should know of it."""
    values = finite_values(path, result)
    if len(values) != 1:
        raise RequestError(
            f"{path}: one DICOM file holds one slice, not {len(values)}; name a folder instead."
        )
    export = DicomExport(result, values, uids)
    write_dataset(path, export.dataset(0))
    return export.notes()


def write_dicom_series(
    folder: Path,
    result: Result,
    *,
    overwrite: bool = False,
    uids: UidMap | None = None,
    before_slice: Callable[[int], None] | None = None,
) -> list[str]:
    """A folder with one file per slice, which appears when all of them are written.

    ``before_slice`` hears of every slice, and may raise to leave no folder at all.
    """
    values = finite_values(folder, result)
    export = DicomExport(result, values, uids)
    with new_folder(folder, overwrite) as partial:
        for index in range(len(values)):
            if before_slice is not None:
                before_slice(index)
            slice_path, content = partial / SLICE_NAME.format(index + 1), export.dataset(index)
            try:
                write_dataset(slice_path, content)
            except DualscopeError as error:  # name the folder asked for, not the interim one
                reason = getattr(error.__cause__, "strerror", None) or str(error)
                raise DualscopeError(f"Cannot write {folder}: {reason}.") from error
    return export.notes()


def finite_values(path: Path, result: Result) -> np.ndarray:
    values = result.values()
    if not np.isfinite(values).all():
        raise DualscopeError(f"{path} was not written: the image holds NaN or infinity.")
    return values


class DicomExport:
    """The slices of a result as data sets with pixels, on one scale and in one window."""

    def __init__(self, result: Result, values: np.ndarray, uids: UidMap | None = None) -> None:
        self.values, self.clipped = values, 0
        self.series = DerivedSeries(result, uids)
        self.is_ct = result.problem.modality == "CT"
        self.scale = 1.0 if self.is_ct else stored_scale(values, self.series.first)
        window = result.window or default_window(result.problem, values)
        self.explanation = "As displayed" if result.window else "Default"
        self.window = window if self.is_ct else scaled_window(window, self.scale)

    def dataset(self, index: int) -> Dataset:
        stored_as = "" if self.is_ct else f"stored value = {self.scale:.9g} x magnitude"
        target = self.series.header(index, stored_as)
        if self.is_ct:
            target.RescaleSlope, target.RescaleIntercept, target.RescaleType = 1, 0, "HU"
        centre, width = self.window
        target.WindowCenter, target.WindowWidth = decimal(centre), decimal(max(width, 1.0))
        target.WindowCenterWidthExplanation = self.explanation
        scaled = np.rint(self.values[index].astype(np.float64) * self.scale)
        self.clipped += int(((scaled < LOWEST) | (scaled > HIGHEST)).sum())
        pixels = np.clip(scaled, LOWEST, HIGHEST).astype(np.int16)
        target.set_pixel_data(pixels, "MONOCHROME2", 16, generate_instance_uid=False)
        return target

    def notes(self) -> list[str]:
        notes = list(self.series.notes)
        if self.clipped:
            notes.append(
                f"DICOM: {self.clipped} pixels lie outside {LOWEST} to {HIGHEST} HU and were "
                "clipped to it."
            )
        return notes


def stored_scale(values: np.ndarray, source: Dataset | None) -> float:
    """What MR magnitudes are multiplied with: one number for the whole series."""
    largest = float(np.abs(values).max())
    slope = number_of(source, "RescaleSlope") or 1.0
    if source is not None and slope > 0 and FEWEST_LEVELS <= largest / slope <= HIGHEST:
        return 1 / slope
    if largest == 0:
        return 1.0
    return 2.0 ** math.floor(math.log2(HIGHEST / largest))


def scaled_window(window: tuple[float, float], scale: float) -> tuple[float, float]:
    """The window that shows scaled values as ``window`` shows the unscaled ones."""
    centre, width = window
    low, high = (centre - 0.5 + sign * (width - 1) / 2 for sign in (-1, 1))
    return linear_window(low * scale, high * scale)


@contextmanager
def new_folder(folder: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to fill, which takes its name when all went well and vanishes when not."""
    recover(folder)
    check_replaceable(folder, overwrite)
    try:
        with (
            tempfile.TemporaryDirectory(
                dir=folder.absolute().parent, prefix=partial_prefix(folder.name), suffix=".partial"
            ) as room,
            Path(room, ROOM_LOCK).open("wb") as lock,
        ):
            lock_file(lock)
            fresh, old = Path(room, "new"), Path(room, "old")
            fresh.mkdir()
            yield fresh
            if folder.exists():
                os.replace(folder, old)
            try:
                os.replace(fresh, folder)
            except OSError:
                if old.exists():
                    os.replace(old, folder)
                raise
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise DualscopeError(f"Cannot write {folder}: {error.strerror}.") from error


def recover(folder: Path) -> None:
    """Clear what killed writers left; a series taken aside by one goes back to its place."""
    for room in folder.absolute().parent.glob(
        f"{glob.escape(partial_prefix(folder.name))}*.partial"
    ):
        with contextlib.suppress(OSError):
            if not room.is_dir() or not abandoned(room):
                continue
            if not folder.exists() and (room / "old").is_dir():
                os.replace(room / "old", folder)
            shutil.rmtree(room, ignore_errors=True)


def check_replaceable(folder: Path, overwrite: bool) -> None:
    """An empty folder may be filled; one with a series of ours replaced, if asked."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RequestError(f"{folder} is a file, not a folder.")
    names = [entry.name for entry in folder.iterdir()]
    if names and not overwrite:
        raise RequestError(f"{folder} is not empty: add ⟦overwrite⟧ to replace its series.")
    foreign = [name for name in names if not OUR_NAMES.fullmatch(name)]
    if foreign:
        raise RequestError(
            f"{folder} holds other files than a series, such as {sorted(foreign)[0]}: "
            "name another folder."
        )
