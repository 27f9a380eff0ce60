"""What a derived image takes over from the header of its source.

Only attributes on these lists are taken: those that stay true of an image computed from the
source. Everything else (private tags, overlays, pixel statistics, dose and reconstruction
kernel of the original) stays behind. A value is taken only if it is legal, for a wrong one
would make a wrong file of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from pathlib import Path
from typing import Any

from pydicom import config
from pydicom.datadict import dictionary_VM, dictionary_VR, tag_for_keyword
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.filewriter import dcmwrite
from pydicom.uid import (
    UID,
    ExplicitVRLittleEndian,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    JPEGLSNearLossless,
    generate_uid,
)

import engine
from engine.data.readers.dicom.values import silence_pydicom
from engine.files.atomic import write_atomic

PATIENT = ("PatientName", "PatientID", "IssuerOfPatientID", "PatientBirthDate", "PatientSex")
STUDY = (
    "StudyInstanceUID",
    "StudyDate",
    "StudyTime",
    "ReferringPhysicianName",
    "StudyID",
    "AccessionNumber",
    "StudyDescription",
    "PatientAge",
    "PatientSize",
    "PatientWeight",
)
SERIES = ("PatientPosition", "BodyPartExamined", "Laterality", "ProtocolName")
FRAME_OF_REFERENCE = ("FrameOfReferenceUID", "PositionReferenceIndicator")
DEIDENTIFIED = (
    "PatientIdentityRemoved",
    "DeidentificationMethod",
    "LongitudinalTemporalInformationModified",
)
IMAGE = (
    "AcquisitionNumber",
    "AcquisitionDate",
    "AcquisitionTime",
    "AcquisitionDateTime",
    "ContrastBolusAgent",
    "ContrastBolusRoute",
    "SliceThickness",
    "LossyImageCompressionRatio",
    "LossyImageCompressionMethod",
)
CT_ACQUISITION = (
    "KVP",
    "ScanOptions",
    "DataCollectionDiameter",
    "DistanceSourceToDetector",
    "DistanceSourceToPatient",
    "GantryDetectorTilt",
    "TableHeight",
    "RotationDirection",
    "FilterType",
    "FocalSpots",
)
MR_ACQUISITION = (
    "ScanningSequence",
    "SequenceVariant",
    "ScanOptions",
    "MRAcquisitionType",
    "SequenceName",
    "AngioFlag",
    "RepetitionTime",
    "EchoTime",
    "InversionTime",
    "TriggerTime",
    "EchoTrainLength",
    "NumberOfAverages",
    "ImagingFrequency",
    "ImagedNucleus",
    "EchoNumbers",
    "MagneticFieldStrength",
    "PixelBandwidth",
    "ReceiveCoilName",
    "TransmitCoilName",
    "InPlanePhaseEncodingDirection",
    "FlipAngle",
    "VariableFlipAngleFlag",
)
ACQUISITION = {"CT": CT_ACQUISITION, "MR": MR_ACQUISITION}
SCANNER = (
    "Manufacturer",
    "ManufacturerModelName",
    "InstitutionName",
    "StationName",
    "DeviceSerialNumber",
    "SoftwareVersions",
)

# where the standard allows only these
TERMS = {
    "PatientSex": {"M", "F", "O"},
    "PatientIdentityRemoved": {"YES", "NO"},
    "LongitudinalTemporalInformationModified": {"UNMODIFIED", "MODIFIED", "REMOVED"},
    "Laterality": {"R", "L"},
    "RotationDirection": {"CW", "CC"},
    "ScanningSequence": {"SE", "IR", "GR", "EP", "RM"},
    "SequenceVariant": {"SK", "MTC", "SS", "TRSS", "SP", "MP", "OSP", "NONE"},
    "MRAcquisitionType": {"2D", "3D"},
    "AngioFlag": {"Y", "N"},
    "InPlanePhaseEncodingDirection": {"ROW", "COL"},
    "VariableFlipAngleFlag": {"Y", "N"},
}
# body parts of which there is one: a side must not be named (PS3.16 L), of others it must
_UNPAIRED_WORDS = """
    ABDOMEN ABDOMENPELVIS AORTA BACK BLADDER BRAIN CEREBELLUM CERVIX CHEST CHESTABDOMEN
    CHESTABDPELVIS CIRCLEOFWILLIS COCCYX COLON CORONARYARTERY CSPINE CTSPINE DUODENUM ESOPHAGUS
    FACE GALLBLADDER HEAD HEADNECK HEART ILEUM ILIUM JAW JEJUNUM LARYNX LIVER LSPINE LSSPINE
    MAXILLA MEDIASTINUM MOUTH NECK NECKCHEST NECKCHESTABDOMEN NECKCHESTABDPELV NOSE PANCREAS
    PELVIS PENIS PHARYNX PROSTATE RECTUM SCALP SKULL SPINE SPLEEN SSPINE STERNUM STOMACH THYMUS
    THYROID TLSPINE TONGUE TRACHEA TSPINE URETER URETHRA UTERUS VAGINA VULVA WHOLEBODY
"""
UNPAIRED = frozenset(_UNPAIRED_WORDS.split())
LOSSY_SYNTAXES = {JPEGBaseline8Bit, JPEGExtended12Bit, JPEGLSNearLossless}


def copy_attributes(source: Dataset, keywords: Iterable[str], target: Dataset) -> list[str]:
    """Copy what is there and legal; returns the keywords of what was there and is not legal."""
    refused = []
    for keyword in keywords:
        try:
            element = legal_element(source, keyword)
        except Exception:  # a damaged header fails in as many ways as there are decoders
            refused.append(keyword)
        else:
            if element is not None:
                target.add(element)
    return refused


def legal_element(source: Dataset, keyword: str) -> DataElement | None:
    """The attribute as a new element; None when absent or empty, an error when not legal."""
    if keyword not in source:
        return None
    vr = dictionary_VR(keyword)
    with silence_pydicom():
        stored = source[keyword].value
        values = list(stored) if isinstance(stored, MutableSequence) else [stored]
        values = [clean(value, vr) for value in values if value is not None]
        if not values or values == [""]:
            return None
        if len(values) > 1 and dictionary_VM(keyword) == "1":
            raise ValueError("several values")
        if not set(values) <= TERMS.get(keyword, set(values)):
            raise ValueError("not a defined term")
        value = values[0] if len(values) == 1 else values
        tag = tag_for_keyword(keyword)
        assert tag is not None
        return DataElement(tag, vr, value, validation_mode=config.RAISE)


def clean(value: Any, vr: str) -> Any:
    """Text without control characters (an escape could change how the rest is read)."""
    if not isinstance(value, (str, bytes)) and vr not in ("PN", "DS", "IS", "UI", "DA", "TM", "DT"):
        return value
    if isinstance(value, bytes):
        raise ValueError("bytes where there should be text")
    text = "".join(c for c in str(value) if c.isprintable()).strip()
    if vr in ("DA", "TM") and "-" in text:
        raise ValueError("a range, not a moment")
    return text


def raw_values(source: Dataset | None, keyword: str) -> list[Any]:
    """All values of an attribute, legal or not; none when they cannot be decoded."""
    try:
        with silence_pydicom():
            value = source.get(keyword) if source is not None else None
    except Exception:  # as above
        return []
    return [one for one in (value if isinstance(value, MutableSequence) else [value]) if one]


def fill_empty(target: Dataset, keywords: Iterable[str]) -> None:
    """Attributes a file must have, although nobody knows their value."""
    for keyword in keywords:
        if keyword not in target:
            setattr(target, keyword, None)


def settle_laterality(target: Dataset) -> None:
    """A side, known or not, unless the body part has none."""
    if target.get("BodyPartExamined") not in UNPAIRED:
        fill_empty(target, ["Laterality"])
    elif "Laterality" in target:
        del target.Laterality


def text_of(source: Dataset | None, keyword: str) -> str:
    """One value as text, empty when it is absent or not legal."""
    holder = Dataset()
    if source is not None:
        copy_attributes(source, [keyword], holder)
    return str(holder.get(keyword, "") or "")


def number_of(source: Dataset | None, keyword: str) -> float | None:
    try:
        return float(text_of(source, keyword))
    except ValueError:
        return None


def lossy_compression(source: Dataset) -> str | None:
    """'01' once lossy, for ever: by its own word, or by the syntax it was stored in."""
    if set(raw_values(getattr(source, "file_meta", None), "TransferSyntaxUID")) & LOSSY_SYNTAXES:
        return "01"
    said = text_of(source, "LossyImageCompression")
    return said if said in ("00", "01") else None


def burned_in(source: Dataset) -> str | None:
    """YES or NO where the source says so; nothing where it says nothing."""
    said = text_of(source, "BurnedInAnnotation")
    return said if said in ("YES", "NO") else None


# drawn once at random (as PS3.5 B.2 allows): it names this implementation in every file
IMPLEMENTATION_CLASS = UID("2.25.286585567723265860384133675220209728952")


def new_uid() -> UID:
    """From a random UUID: it needs no registered root of ours."""
    return generate_uid(prefix=None)


def write_dataset(path: Path, dataset: Dataset) -> None:
    """Write as explicit VR little endian, the pixels uncompressed."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.ImplementationClassUID = IMPLEMENTATION_CLASS
    meta.ImplementationVersionName = f"DUALSCOPE {engine.__version__}"[:16]
    dataset.file_meta = meta
    write_atomic(path, lambda stream: dcmwrite(stream, dataset, enforce_file_format=True))
