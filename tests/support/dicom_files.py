"""Small DICOM files of our own making: classic and enhanced, plain and compressed.

Pictures differ in every direction and slice, so that a flip, a transposition or a wrong order
cannot go unseen. Every header carries a patient's name and number that nothing may repeat.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydicom import uid
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.sequence import Sequence as Items

SECRETS = ("Rumpelstilz", "PID-0815", "19010203")
ROWS, COLUMNS = 33, 40  # JPEG 2000 encoders want 32 or more
AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
CLASSES = {"CT": uid.CTImageStorage, "MR": uid.MRImageStorage}
ENHANCED = {"CT": uid.EnhancedCTImageStorage, "MR": uid.EnhancedMRImageStorage}


def picture(number: int = 0, rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """Stored values of slice ``number``."""
    row, column = np.mgrid[:rows, :columns]
    return (200 * (number + 1) + 13 * row + column).astype(np.int32)


def header(modality: str = "CT", **tags: Any) -> Dataset:
    """A valid classic header without pixels; ``tags`` replace or (None) remove elements."""
    data = Dataset()
    data.SOPClassUID = CLASSES.get(modality, uid.SecondaryCaptureImageStorage)
    data.SOPInstanceUID = uid.generate_uid()
    data.Modality = modality
    data.PatientName, data.PatientID, data.PatientBirthDate = SECRETS
    data.StudyInstanceUID, data.SeriesInstanceUID = "1.2.3", "1.2.3.4"
    data.SeriesNumber, data.InstanceNumber = 3, 1
    data.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL" if modality == "CT" else "M"]
    data.ImageOrientationPatient = list(AXIAL)
    data.ImagePositionPatient = [-20.0, -30.0, 5.0]
    data.PixelSpacing, data.SliceThickness = [0.8, 0.8], 2.0
    if modality == "CT":
        data.RescaleSlope, data.RescaleIntercept, data.RescaleType = 1, -1024, "HU"
    for keyword, value in tags.items():
        if value is not None:
            setattr(data, keyword, value)
        elif keyword in data:
            delattr(data, keyword)
    return data


def set_pixels(
    data: Dataset,
    stored: np.ndarray,
    allocated: int = 16,
    bits: int | None = None,
    high_bit: int | None = None,
    signed: bool = False,
) -> None:
    """Native little-endian pixels ``[rows, columns]`` or ``[frames, rows, columns]``."""
    data.SamplesPerPixel = 1
    data.PhotometricInterpretation = data.get("PhotometricInterpretation", "MONOCHROME2")
    data.Rows, data.Columns = stored.shape[-2:]
    if stored.ndim == 3:
        data.NumberOfFrames = len(stored)
    data.BitsAllocated = allocated
    data.BitsStored = bits or allocated
    data.HighBit = data.BitsStored - 1 if high_bit is None else high_bit
    data.PixelRepresentation = int(signed)
    data.PixelData = stored.astype(f"<{'i' if signed else 'u'}{allocated // 8}").tobytes()
    if len(data.PixelData) % 2:
        data.PixelData += b"\0"
    data["PixelData"].VR = "OB" if allocated == 8 else "OW"


def save(path: Path, data: Dataset, syntax: str = uid.ExplicitVRLittleEndian) -> Path:
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = data.SOPClassUID
    meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID
    meta.TransferSyntaxUID = uid.UID(syntax)
    data.file_meta = meta
    path.parent.mkdir(parents=True, exist_ok=True)
    data.save_as(path, enforce_file_format=True)
    return path


def write_slice(
    path: Path,
    modality: str = "CT",
    stored: np.ndarray | None = None,
    syntax: str = uid.ExplicitVRLittleEndian,
    pixels: dict[str, Any] | None = None,
    **tags: Any,
) -> Path:
    """One classic file; ``pixels`` are the options of ``set_pixels``."""
    data = header(modality, **tags)
    set_pixels(data, picture() if stored is None else stored, **(pixels or {}))
    if uid.UID(syntax).is_encapsulated:
        data.file_meta = FileMetaDataset()
        data.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
        data.compress(syntax, generate_instance_uid=False)
    elif syntax == uid.ExplicitVRBigEndian:
        dtype = f"<u{data.BitsAllocated // 8}"
        data.PixelData = np.frombuffer(data.PixelData, dtype).byteswap().tobytes()
    return save(path, data, syntax)


def write_series(
    folder: Path,
    heights: Sequence[float],
    modality: str = "CT",
    direction: Sequence[float] = (0.0, 0.0, 1.0),
    **tags: Any,
) -> list[Path]:
    """Slices along ``direction`` whose names and InstanceNumbers run against their positions."""
    files = []
    for number, height in enumerate(heights):
        place = np.array([-20.0, -30.0, 0.0]) + height * np.array(direction)
        own = {"ImagePositionPatient": [round(float(x), 6) for x in place]}
        own |= {"InstanceNumber": len(heights) - number, "SOPInstanceUID": uid.generate_uid()}
        name = f"{(7 * number) % len(heights):04}_{len(heights) - number}.dcm"
        stored = picture(number)
        files.append(write_slice(folder / name, modality, stored, **(own | tags)))
    return files


def item(**values: Any) -> Dataset:
    data = Dataset()
    for keyword, value in values.items():
        setattr(data, keyword, value)
    return data


def write_enhanced(
    path: Path,
    heights: Sequence[float],
    modality: str = "CT",
    slopes: Sequence[float] | None = None,
    frame_types: Sequence[str] | None = None,
    syntax: str = uid.ExplicitVRLittleEndian,
    **tags: Any,
) -> Path:
    """A multi-frame file: orientation and measures shared, position and rescale per frame."""
    gone = ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness")
    gone += ("RescaleSlope", "RescaleIntercept", "RescaleType")
    data = header(modality, **dict.fromkeys(gone), **tags)
    data.SOPClassUID = ENHANCED[modality]
    shared = item(
        PlaneOrientationSequence=Items([item(ImageOrientationPatient=list(AXIAL))]),
        PixelMeasuresSequence=Items([item(PixelSpacing=[0.8, 0.8], SliceThickness=2.0)]),
    )
    frames = []
    for number, height in enumerate(heights):
        slope = slopes[number] if slopes else 1.0
        frame = item(
            PlanePositionSequence=Items([item(ImagePositionPatient=[-20.0, -30.0, height])]),
            PixelValueTransformationSequence=Items(
                [item(RescaleSlope=slope, RescaleIntercept=-1024, RescaleType="HU")]
            ),
        )
        if frame_types:
            kind = item(FrameType=["ORIGINAL", "PRIMARY", "X", frame_types[number]])
            setattr(frame, f"{modality}ImageFrameTypeSequence", Items([kind]))
        frames.append(frame)
    data.SharedFunctionalGroupsSequence = Items([shared])
    data.PerFrameFunctionalGroupsSequence = Items(frames)
    set_pixels(data, np.stack([picture(number) for number in range(len(heights))]))
    if uid.UID(syntax).is_encapsulated:
        data.file_meta = FileMetaDataset()
        data.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
        data.compress(syntax, generate_instance_uid=False)
    return save(path, data, syntax)


def write_encapsulated(path: Path, frame: bytes, syntax: str, **tags: Any) -> Path:
    """A file around a compressed frame as it is given, right or wrong."""
    data = header(**tags)
    set_pixels(data, picture(), allocated=tags.pop("BitsAllocated", 8))
    data.PixelData = encapsulate([frame])
    data["PixelData"].VR = "OB"
    data["PixelData"].is_undefined_length = True
    return save(path, data, syntax)


def write_dicomdir(path: Path, names: Sequence[Sequence[str]]) -> Path:
    """A DICOMDIR that names files by their path components, whatever these are."""
    data = Dataset()
    data.SOPClassUID, data.SOPInstanceUID = uid.MediaStorageDirectoryStorage, uid.generate_uid()
    data.FileSetID = "TEST"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydicom rightly finds the names odd
        records = [
            item(DirectoryRecordType="IMAGE", ReferencedFileID=list(parts)) for parts in names
        ]
        data.DirectoryRecordSequence = Items(records)
        return save(path, data)


def to_jpeg_lossless(source: Path, target: Path) -> Path:
    """Process 14, which of the permissive libraries only GDCM can write."""
    import gdcm

    change = gdcm.ImageChangeTransferSyntax()
    change.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.JPEGLosslessProcess14_1))
    reader = gdcm.ImageReader()
    reader.SetFileName(str(source))
    assert reader.Read()
    change.SetInput(reader.GetImage())
    assert change.Change()
    writer = gdcm.ImageWriter()
    writer.SetFileName(str(target))
    writer.SetFile(reader.GetFile())
    writer.SetImage(change.GetOutput())
    assert writer.Write()
    return target
