"""Screenshots as DICOM Secondary Capture: pictures to look at, not images to measure in."""

from __future__ import annotations

import uuid
from datetime import datetime
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset
from pydicom.uid import SecondaryCaptureImageStorage

from engine.export.dicom_copy import (
    PATIENT,
    STUDY,
    copy_attributes,
    fill_empty,
    new_uid,
    settle_laterality,
    write_dataset,
)
from engine.export.dicom_deidentify import UidMap, burned_in_notes, deidentify, identifying_words
from engine.export.dicom_derivation import MAX_LABEL, add_equipment, source_image
from engine.export.dicom_header import MAY_BE_EMPTY, WARNING, copy_deidentification, series_number
from engine.export.picture import marked
from engine.spec.errors import RequestError
from engine.spec.marks import Marks


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
