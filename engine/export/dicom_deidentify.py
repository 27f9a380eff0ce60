"""De-identification after DICOM PS3.15, Basic Application Level Confidentiality Profile.

The tables list what stays, what is emptied and what is replaced; everything else is removed,
private tags and free text included. That is stricter than the profile, which lists what must
go: an attribute that nobody thought of cannot leak.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Collection

from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.uid import UID

import engine
from engine.data.readers.dicom.values import silence_pydicom
from engine.export.dicom_copy import CT_ACQUISITION, MR_ACQUISITION, raw_values, text_of
from engine.export.dicom_derivation import code_sequence

KEPT = """
    SpecificCharacterSet SOPClassUID ImageType Modality ConversionType
    PatientPosition BodyPartExamined Laterality SeriesNumber AcquisitionNumber InstanceNumber
    PixelSpacing ImageOrientationPatient ImagePositionPatient SliceThickness SliceLocation
    SpacingBetweenSlices SamplesPerPixel PhotometricInterpretation PlanarConfiguration
    Rows Columns BitsAllocated BitsStored HighBit PixelRepresentation PixelData
    RescaleSlope RescaleIntercept RescaleType WindowCenter WindowWidth
    BurnedInAnnotation LossyImageCompression LossyImageCompressionRatio
    LossyImageCompressionMethod
    SourceImageSequence ReferencedSOPClassUID SpatialLocationsPreserved
    ContributingEquipmentSequence Manufacturer ManufacturerModelName
    PurposeOfReferenceCodeSequence CodeValue CodingSchemeDesignator CodeMeaning
"""
EMPTIED = """
    PatientBirthDate PatientSex StudyDate StudyTime ReferringPhysicianName StudyID
    AccessionNumber PositionReferenceIndicator ContrastBolusAgent
"""
RENAMED_UIDS = """
    StudyInstanceUID SeriesInstanceUID SOPInstanceUID FrameOfReferenceUID
    ReferencedSOPInstanceUID ReferencedFrameOfReferenceUID
"""
# keyword -> what happens; a pseudonym is the profile's dummy value
ACTIONS: dict[str, str] = (
    dict.fromkeys([*KEPT.split(), *CT_ACQUISITION, *MR_ACQUISITION], "keep")
    | dict.fromkeys(EMPTIED.split(), "empty")
    | dict.fromkeys(RENAMED_UIDS.split(), "new uid")
    | dict.fromkeys(["PatientName", "PatientID"], "pseudonym")
)

IDENTIFIERS = (
    "PatientName",
    "PatientID",
    "OtherPatientNames",
    "OtherPatientIDs",
    "PatientBirthName",
    "PatientMotherBirthName",
    "AccessionNumber",
    "ReferringPhysicianName",
    "OperatorsName",
)
TEXT_VRS = {"AE", "CS", "LO", "LT", "PN", "SH", "ST", "UC", "UT"}
STANDARD_ROOT = "1.2.840.10008."  # names of things that the standard defines, never of patients


class UidMap:
    """New UIDs for old: the same for the same, and no way back without the key.

    One map serves several exports that are to fit together; a new one makes unrelated ones.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.strip().encode(), hashlib.sha256)

    def __getitem__(self, uid: str) -> UID:
        if uid.startswith(STANDARD_ROOT):
            return UID(uid)
        number = uuid.UUID(bytes=self._digest(f"uid {uid}")[:16], version=4).int
        return UID(f"2.25.{number}")

    def pseudonym(self, patient: str) -> str:
        """A number for a patient that keeps their exports together."""
        return f"DS-{self._digest(f'patient {patient}').hex()[:12].upper()}"


def identifying_words(source: Dataset | None) -> set[str]:
    """The names and numbers of the people in a header, in lower case."""
    words: set[str] = set()
    for keyword in IDENTIFIERS:
        for value in raw_values(source, keyword):
            text = str(value).strip()
            words |= {text.casefold(), *re.split(r"[\^=,\\\s]+", text.casefold())}
    # two letters are a name in Chinese, but also half of the technical terms
    return {word for word in words if len(word) >= (3 if word.isascii() else 2)}


def deidentify(dataset: Dataset, uids: UidMap, words: Collection[str] = ()) -> None:
    """Clean a data set and all its sequences in place, and say so in it.

    ``words`` are what the source says of its people: a text that mentions one is removed even
    where the table would keep it.
    """
    strip_identity(dataset, uids, words)
    dataset.PatientIdentityRemoved = "YES"
    dataset.DeidentificationMethod = [
        f"Dualscope {engine.__version__}: PS3.15 Basic Profile",
        "All attributes outside a list of technical ones removed",
    ]
    dataset.DeidentificationMethodCodeSequence = code_sequence(
        "113100", "Basic Application Confidentiality Profile"
    )
    dataset.LongitudinalTemporalInformationModified = "REMOVED"


def strip_identity(
    dataset: Dataset, uids: UidMap, words: Collection[str] = (), patient: str | None = None
) -> None:
    """Apply the table to a data set and the items of its sequences."""
    if patient is None:
        patient = text_of(dataset, "PatientID") or text_of(dataset, "PatientName")
    for tag in list(dataset.keys()):
        try:
            with silence_pydicom():
                element = dataset[tag]
        except Exception:  # what cannot be decoded cannot be judged
            del dataset[tag]
            continue
        action = ACTIONS.get(element.keyword, "remove")  # private tags have no keyword
        if action == "remove" or (action == "keep" and _mentions(element, words)):
            del dataset[tag]
        elif action == "empty":
            element.value = None
        elif action == "pseudonym":
            number = uids.pseudonym(patient) if patient and element.value else ""
            element.value = f"{number}^" if number and element.VR == "PN" else number
        elif action == "new uid":
            element.value = uids[str(element.value)] if element.value else None
        elif element.VR == "SQ":
            for item in element.value:
                strip_identity(item, uids, words, patient)


def _mentions(element: DataElement, words: Collection[str]) -> bool:
    if element.VR not in TEXT_VRS:
        return False
    text = str(element.value).casefold()
    return any(word in text for word in words)


def burned_in_notes(said: str | None, what: str = "The source") -> list[str]:
    """De-identification does not look at the pixels: what the person should check."""
    if said == "YES":
        return [
            f"{what} says that text is burned into its pixels: de-identification does not "
            "remove it; look at every image before you pass it on."
        ]
    if said is None:
        return [
            f"{what} does not say whether text is burned into its pixels, and "
            "de-identification does not look for it: look at the images before you pass them on."
        ]
    return ["De-identification cleans the header, not the pixels."]
