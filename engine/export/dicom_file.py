"""One data set as one file, complete or not at all."""

from __future__ import annotations

from pathlib import Path

from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.filewriter import dcmwrite
from pydicom.uid import UID, ExplicitVRLittleEndian, generate_uid

import engine
from engine.files.atomic import write_atomic

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
