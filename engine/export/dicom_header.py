"""The header of a derived CT or MR image: its source's truths, and how it was made.

Built in this order: what is copied from the source; that cleaned, when it is to be
de-identified; then what is new. So nothing of ours has to be cleaned, and nothing of the
patient's comes after the cleaning.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from pydicom.uid import CTImageStorage, MRImageStorage
from pydicom.valuerep import DSfloat

from engine.data.dataset import Placement
from engine.export import dicom_copy as lists
from engine.export.dicom_copy import (
    burned_in,
    copy_attributes,
    fill_empty,
    lossy_compression,
    new_uid,
    number_of,
    raw_values,
    settle_laterality,
    text_of,
)
from engine.export.dicom_deidentify import (
    UidMap,
    burned_in_notes,
    deidentify,
    identifying_words,
    strip_identity,
)
from engine.export.dicom_derivation import (
    add_equipment,
    contributing_equipment,
    derivation_code,
    description,
    run_name,
    series_description,
    source_image,
)

if TYPE_CHECKING:
    from engine.export.outputs import Result

SOP_CLASSES = {"CT": CTImageStorage, "MR": MRImageStorage}
IMAGE_TYPES = {
    "CT": ["DERIVED", "SECONDARY", "AXIAL"],
    "MR": ["DERIVED", "SECONDARY", "OTHER"],
}
PICTURES = {".png", ".tif", ".tiff"}  # kinds of file that may be screenshots
WARNING = "Not for diagnostic use"

# attributes a file must have, whether or not anybody knows the value (type 2 of the standard)
MAY_BE_EMPTY = (
    *("PatientName", "PatientID", "PatientBirthDate", "PatientSex"),
    *("StudyDate", "StudyTime", "ReferringPhysicianName", "StudyID", "AccessionNumber"),
)
MAY_BE_EMPTY_IMAGE = {
    "CT": ("AcquisitionNumber", "KVP", "PatientPosition", "PositionReferenceIndicator"),
    "MR": (
        *("ScanOptions", "MRAcquisitionType", "RepetitionTime", "EchoTime", "EchoTrainLength"),
        *("PatientPosition", "PositionReferenceIndicator"),
    ),
}


class DerivedSeries:
    """What all slices of one export share; ``header`` gives a slice's data set without pixels.

    ``notes`` says what the person should know of the export.
    """

    def __init__(self, result: Result, uids: UidMap | None = None) -> None:
        self.result, self.modality = result, result.problem.modality
        self.deidentify, self.uids = result.deidentify, uids or UidMap()
        self.when = None if result.deidentify else datetime.now()  # dates lead to patients
        self.notes: list[str] = []
        self.remarks: list[str] = []  # what the derivation text says besides
        self.uid, fresh_study, fresh_frame = new_uid(), new_uid(), new_uid()
        self.first = self.source(0)
        self.placements, self.in_patient = self._placements()
        self.study_uid = text_of(self.first, "StudyInstanceUID") or fresh_study
        self.frame_uid = self._frame_uid() or fresh_frame
        self.number = series_number(self.first, run_name(result))

    def source(self, index: int) -> Dataset | None:
        """The header of the slice's own source image, when it has one."""
        dataset = self.result.dataset
        if dataset is None or dataset.headers is None:
            return None
        return dataset.headers(self.result.problem.slices[index])

    def _placements(self) -> tuple[list[Placement], bool]:
        """Where the slices lie, and whether that is known or assumed."""
        shape = (int(self.result.image.shape[-2]), int(self.result.image.shape[-1]))
        dataset, given = self.result.dataset, self.result.placements
        if given and dataset and dataset.image_size == shape and all(map(usable, given)):
            return given, True
        pixel = self.result.problem.pixel_mm or (dataset.pixel_mm if dataset else None)
        apart = dataset.slice_mm if dataset and dataset.slice_mm else 1.0
        words = [
            f"position in the patient unknown: an axial stack in {apart:g} mm steps is assumed"
        ]
        if pixel is None:
            words.append("pixel size unknown: 1 mm is assumed")
        self.remarks += words
        self.notes += [f"DICOM: {text}." for text in words]
        return [
            axial_placement(shape, pixel or (1.0, 1.0), number * apart)
            for number in self.result.problem.slices
        ], False

    def _frame_uid(self) -> str:
        """The source's frame of reference, in which its placements are true."""
        frame = text_of(self.first, "FrameOfReferenceUID") if self.in_patient else ""
        if frame and frame == self.study_uid:  # not legal; the same new one for all its exports
            self._note("DICOM: the source names its frame of reference like its study: renamed.")
            return f"2.25.{uuid.uuid5(uuid.NAMESPACE_OID, frame).int}"
        return frame

    def header(self, index: int, stored_as: str = "") -> Dataset:
        """All of slice ``index`` but its pixels; ``stored_as`` says how they are scaled."""
        source = self.first if index == 0 else self.source(index)
        target = self._copied(source)
        self._add_identity(target, index)
        self._add_place(target, self.placements[index])
        self._add_modality(target)
        self._add_derivation(target, source, stored_as)
        return target

    def _copied(self, source: Dataset | None) -> Dataset:
        """What the source says and stays true, without its people if so asked."""
        target, scanner = Dataset(), Dataset()
        target.SpecificCharacterSet = "ISO_IR 192"
        if self.first is not None:
            self._copy(self.first, target, *lists.PATIENT, *lists.STUDY, *lists.SERIES)
            if self.in_patient:
                self._copy(self.first, target, *lists.FRAME_OF_REFERENCE)
            if not self.deidentify:
                copy_deidentification(self.first, target)
            self._copy(self.first, scanner, *lists.SCANNER)
        if source is not None:
            self._copy(source, target, *lists.IMAGE, *lists.ACQUISITION[self.modality])
        self._add_pixel_history(target, source)
        target.StudyInstanceUID, target.FrameOfReferenceUID = self.study_uid, self.frame_uid
        if self.deidentify:
            words = identifying_words(self.first) | identifying_words(source)
            deidentify(target, self.uids, words)
            strip_identity(scanner, self.uids, words)
        target.ContributingEquipmentSequence = contributing_equipment(scanner, self.when)
        return target

    def _copy(self, source: Dataset, target: Dataset, *keywords: str) -> None:
        for keyword in copy_attributes(source, keywords, target):
            self._note(f"DICOM: {keyword} of the source is not legal and was left out.")

    def _add_pixel_history(self, target: Dataset, source: Dataset | None) -> None:
        """Whether the pixels were ever lossily compressed, or hold text."""
        lossy = "00" if source is None else lossy_compression(source)
        if lossy is not None:
            target.LossyImageCompression = lossy
        if lossy != "01":
            for keyword in ("LossyImageCompressionRatio", "LossyImageCompressionMethod"):
                target.pop(keyword, None)
        dataset = self.result.dataset
        files = dataset.files if dataset is not None else ()
        pictures = any(path.suffix.lower() in PICTURES for path in files)
        text = burned_in(source) if source is not None else None
        if source is None and dataset is not None and (dataset.kind != "image" or self._is_demo()):
            text = "NO"  # made from a measurement: nobody has written into it
        if text is not None:
            target.BurnedInAnnotation = text
        if self.deidentify and (source is not None or pictures):
            said = text_of(source, "BurnedInAnnotation") or None
            self._note(*burned_in_notes(said, "The source" if source is not None else "The input"))

    def _is_demo(self) -> bool:
        return str(self.result.record.job.get("input", "")).startswith("demo:")

    def _note(self, *notes: str) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    def _add_identity(self, target: Dataset, index: int) -> None:
        target.SOPClassUID = SOP_CLASSES[self.modality]
        target.SOPInstanceUID = new_uid()
        target.SeriesInstanceUID, target.SeriesNumber = self.uid, self.number
        target.Modality, target.InstanceNumber = self.modality, index + 1
        target.ImageType = IMAGE_TYPES[self.modality]
        target.SeriesDescription = series_description(self.result)
        add_equipment(target)
        if self.when is not None:
            day, time = self.when.strftime("%Y%m%d"), self.when.strftime("%H%M%S")
            target.SeriesDate = target.ContentDate = target.InstanceCreationDate = day
            target.SeriesTime = target.ContentTime = target.InstanceCreationTime = time
        fill_empty(target, (*MAY_BE_EMPTY, *MAY_BE_EMPTY_IMAGE[self.modality]))
        settle_laterality(target)

    def _add_place(self, target: Dataset, placement: Placement) -> None:
        target.PixelSpacing = decimals(placement.spacing_mm)
        target.ImagePositionPatient = decimals(placement.position)
        target.ImageOrientationPatient = decimals((*placement.along_row, *placement.along_column))
        target.SliceLocation = decimal(float(np.dot(placement.position, placement.normal)))
        if placement.thickness_mm:
            target.SliceThickness = decimal(placement.thickness_mm)
        elif "SliceThickness" not in target:
            target.SliceThickness = None

    def _add_modality(self, target: Dataset) -> None:
        if self.modality == "MR":
            if "ScanningSequence" not in target:
                target.ScanningSequence = "RM"  # the standard's word for 'research mode'
            if "SequenceVariant" not in target:
                target.SequenceVariant = "NONE"
            if "IR" in raw_values(target, "ScanningSequence"):
                fill_empty(target, ["InversionTime"])
            else:
                target.pop("InversionTime", None)

    def _add_derivation(self, target: Dataset, source: Dataset | None, stored_as: str) -> None:
        remarks = [stored_as] if stored_as else []
        target.DerivationDescription = description(self.result, remarks + self.remarks)
        code = derivation_code(self.result)
        if code is not None:
            target.DerivationCodeSequence = code
        if source is not None:
            rename = self.uids.__getitem__ if self.deidentify else str
            reference = source_image(source, rename)
            if reference is not None:
                target.SourceImageSequence = reference
        target.ContentQualification = "RESEARCH"
        target.ImageComments = "; ".join([WARNING, *self.remarks])


def copy_deidentification(source: Dataset, target: Dataset) -> None:
    """An image of a de-identified patient says so too, and by which method."""
    copy_attributes(source, lists.DEIDENTIFIED, target)
    items = []
    for item in raw_values(source, "DeidentificationMethodCodeSequence"):
        copied = Dataset()
        if not isinstance(item, Dataset):
            continue
        copy_attributes(item, ("CodeValue", "CodingSchemeDesignator", "CodeMeaning"), copied)
        if len(copied) == 3:
            items.append(copied)
    if items:
        target.DeidentificationMethodCodeSequence = Sequence(items)
    elif target.get("PatientIdentityRemoved") == "YES" and "DeidentificationMethod" not in target:
        target.DeidentificationMethod = "Not stated by the source"


def series_number(source: Dataset | None, run: str = "") -> int:
    """Far from the source's own, sorted by it, and another for every run.

    A run's number is kept as it is (9005003 is run #3 on series 5); other names take their place
    among the thousand by their digits.
    """
    base = 9000 + int(number_of(source, "SeriesNumber") or 0) % 1_000_000
    own = int(run[1:]) if run.startswith("#") else int(run, 16) if run else 0
    return 1000 * base + own % 1000


def usable(placement: Placement) -> bool:
    numbers = (*placement.position, *placement.along_row, *placement.along_column)
    lengths = [np.linalg.norm(placement.along_row), np.linalg.norm(placement.along_column)]
    spaced = all(np.isfinite(mm) and mm > 0 for mm in placement.spacing_mm)
    return spaced and bool(np.isfinite(numbers).all()) and bool(np.allclose(lengths, 1, atol=1e-3))


def axial_placement(
    shape: tuple[int, int], pixel_mm: tuple[float, float], z_mm: float
) -> Placement:
    """The image's centre on the z axis: what a viewer expects of an axial slice."""
    (rows, columns), (row_mm, column_mm) = shape, pixel_mm
    x, y = -(columns - 1) / 2 * column_mm, -(rows - 1) / 2 * row_mm
    return Placement((x, y, float(z_mm)), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), pixel_mm)


def decimal(value: float) -> DSfloat:
    """As exact as the 16 characters of a decimal string allow."""
    return DSfloat(float(value), auto_format=True)


def decimals(values: tuple[float, ...]) -> list[DSfloat]:
    return [decimal(value) for value in values]
