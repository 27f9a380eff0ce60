"""Writing DICOM: one file for a slice, a folder for a series, or a screenshot to look at.

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
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydicom.dataset import Dataset
from pydicom.uid import SecondaryCaptureImageStorage

from engine.export.dicom_copy import (
    PATIENT,
    STUDY,
    copy_attributes,
    fill_empty,
    new_uid,
    number_of,
    settle_laterality,
    write_dataset,
)
from engine.export.dicom_deidentify import UidMap, burned_in_notes, deidentify, identifying_words
from engine.export.dicom_derivation import MAX_LABEL, add_equipment, source_image
from engine.export.dicom_header import (
    MAY_BE_EMPTY,
    WARNING,
    DerivedSeries,
    copy_deidentification,
    decimal,
    series_number,
)
from engine.export.outputs import default_window, linear_window
from engine.export.picture import marked
from engine.files.atomic import ROOM_LOCK, abandoned, lock_file, partial_prefix
from engine.spec.errors import DualscopeError, RequestError
from engine.spec.marks import Marks

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


def write_secondary_capture(
    path: Path,
    pixels: np.ndarray,
    header: Dataset | None = None,
    *,
    title: str = "Dualscope screenshot",
    marks: Marks | None = Marks(),  # noqa: B008 (frozen)
    run_number: int | None = None,
    deidentified: bool = False,
    uids: UidMap | None = None,
) -> list[str]:
    """Write 8-bit grey ``[H, W]`` or colour ``[H, W, 3]``; returns what the person should know.

    ``marks`` are drawn into the pixels; None when these carry them already. ``header`` is that of
    the image on the screen, when it came from DICOM: the screenshot then belongs to its study.
    ``title`` becomes the series description; keep patients out of it.
    """
    colour = pixels.ndim == 3 and pixels.shape[-1] == 3
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or colour) or not pixels.size:
        raise RequestError(f"{path}: a screenshot is an 8-bit grey or RGB picture.")
    uids = uids or UidMap()
    target = Dataset()
    target.SpecificCharacterSet = "ISO_IR 192"
    refused: list[str] = []
    if header is not None:
        refused = copy_attributes(header, (*PATIENT, *STUDY), target)
        if not deidentified:
            copy_deidentification(header, target)
    if "StudyInstanceUID" not in target:
        target.StudyInstanceUID = new_uid()
    notes = [
        f"DICOM: {keyword} of the source is not legal and was left out." for keyword in refused
    ]
    if deidentified:
        deidentify(target, uids, identifying_words(header))
        notes += burned_in_notes("YES", "A screenshot")
    run = f"#{run_number}" if run_number is not None else uuid.uuid4().hex[:6]
    _add_capture(target, header, title, run, None if deidentified else datetime.now())
    if header is not None:
        reference = source_image(header, uids.__getitem__ if deidentified else str)
        if reference is not None:
            target.SourceImageSequence = reference
    target.set_pixel_data(
        np.ascontiguousarray(pixels if marks is None else marked(pixels, marks)),
        "RGB" if colour else "MONOCHROME2",
        8,
        generate_instance_uid=False,
    )
    write_dataset(path, target)
    return notes


def _add_capture(
    target: Dataset, header: Dataset | None, title: str, run: str, when: datetime | None
) -> None:
    target.SOPClassUID = SecondaryCaptureImageStorage
    target.SOPInstanceUID, target.SeriesInstanceUID = new_uid(), new_uid()
    target.SeriesNumber = series_number(header, run)
    target.Modality, target.ConversionType, target.InstanceNumber = "OT", "WSD", 1
    target.ImageType = ["DERIVED", "SECONDARY"]
    ending = f", run {run}" if run.startswith("#") else f", {run}"
    target.SeriesDescription = title[: MAX_LABEL - len(ending)] + ending
    target.PatientOrientation = None  # it holds several panes: no one direction is right
    target.DerivationDescription = "Screenshot of Dualscope, research use only"
    target.BurnedInAnnotation, target.ContentQualification = "YES", "RESEARCH"
    target.ImageComments = WARNING
    add_equipment(target)
    if when is not None:
        day, time = when.strftime("%Y%m%d"), when.strftime("%H%M%S")
        target.DateOfSecondaryCapture = target.ContentDate = target.InstanceCreationDate = day
        target.TimeOfSecondaryCapture = target.ContentTime = target.InstanceCreationTime = time
    fill_empty(target, MAY_BE_EMPTY)
    settle_laterality(target)
