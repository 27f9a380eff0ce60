"""Results and source headers for the tests of DICOM writing."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from helpers import DenseOperator
from pydicom.dataset import Dataset as Header
from pydicom.sequence import Sequence

from engine.data.dataset import ImageDataset, Placement
from engine.export.outputs import Result
from engine.files.record import RunRecord
from engine.physics.problem import Problem
from engine.physics.units import IntensityMap

ROWS, COLUMNS = 20, 28
SECRETS = ("Zwölfender", "Hübschmann", "PID-4711-77", "山田", "太郎", "Yamada")
PRIOR = {"name": "test-prior", "sha256": "ab" * 32}
OPERATORS = {
    "CT": {"kind": "ct", "geometry": {"kind": "fan", "angles_rad": [0.0, 0.5, 1.0]}},
    "MR": {
        "kind": "mri-single-coil",
        "mask": {
            "name": "inversebench",
            "acceleration": 6.0,
            "true_acceleration": 4.27,
            "acs_lines": 25,
        },
    },
}


def picture(count: int = 1, modality: str = "CT") -> np.ndarray:
    """Different in every direction and slice: a flip or a shift cannot go unseen."""
    k, row, column = np.meshgrid(
        np.arange(count), np.arange(ROWS), np.arange(COLUMNS), indexing="ij"
    )
    values = -1000 + 3.3 * row**2 + 7.7 * column + 101.25 * k
    values[:, 2:5, 3:10] = 1234.5
    return (values if modality == "CT" else np.abs(values)).astype(np.float32)


def oblique_placements(count: int, thickness_mm: float | None = 2.5) -> tuple[Placement, ...]:
    """Turned about two axes, with unequal spacings and positions far from round numbers."""
    a, b = 0.3, -0.45
    turn_z = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    turn_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    axes = turn_x @ turn_z
    start = np.array([-123.456789, 45.678912, -234.567891])
    return tuple(
        Placement(
            tuple((start + 2.5 * k * axes[:, 2]).tolist()),
            tuple(axes[:, 0].tolist()),
            tuple(axes[:, 1].tolist()),
            (0.7031251, 0.8123457),
            thickness_mm,
        )
        for k in range(count)
    )


def make_result(
    values: np.ndarray,
    modality: str = "CT",
    headers: list[Header] | None = None,
    placements: tuple[Placement, ...] | None = None,
    **changes: Any,
) -> Result:
    """A result whose physical values are ``values [N, H, W]``."""
    image = torch.from_numpy(values)[:, None]
    if modality == "MR":  # a phase that the magnitude must not see
        image = torch.cat([0.6 * image, -0.8 * image], dim=1)
    count, rows, columns = values.shape
    problem = Problem(
        operator=DenseOperator(torch.zeros(1, rows * columns), (1, rows, columns)),
        measurement=torch.zeros(count, 1, 1, 1),
        intensity=IntensityMap("hu" if modality == "CT" else "mr", 1.0),
        modality=modality,
        pixel_mm=changes.pop("pixel_mm", (0.7, 0.8)),
        provenance={"simulated": True},
    )
    dataset = ImageDataset(
        modality=modality,
        description="test",
        count=count,
        image_size=(rows, columns),
        pixel_mm=problem.pixel_mm,
        placements=placements,
        headers=headers.__getitem__ if headers else None,
    )
    record = RunRecord(
        job={
            "input": "/home/Hübschmann/PID-4711-77.dcm",
            "solver": "dc-pnpdp",
            "settings": {"nfe": 50, "rho_over_sigma2": 1e-5, "cg_iterations": 20},
            "prior": "/models/Hübschmann.safetensors",
            "seed": 17,
        },
        prior=PRIOR,
        operator=OPERATORS[modality],
        input={"name": "/home/Hübschmann/PID-4711-77.dcm", "sha256": "cd" * 32},
        status="done",
    )
    return Result(problem, image, record, dataset, **changes)


def source_header(modality: str = "CT", index: int = 0) -> Header:
    """A scanner's header, with the patient in every corner of it."""
    header = Header()
    header.SpecificCharacterSet = "ISO_IR 192"
    header.SOPClassUID = f"1.2.840.10008.5.1.4.1.1.{2 if modality == 'CT' else 4}"
    header.SOPInstanceUID = f"1.3.6.1.4.1.9999.5.{index + 1}"
    header.StudyInstanceUID = "1.3.6.1.4.1.9999.1"
    header.SeriesInstanceUID = "1.3.6.1.4.1.9999.2"
    header.FrameOfReferenceUID = "1.3.6.1.4.1.9999.3"
    header.Modality, header.SeriesNumber = modality, 4
    header.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL" if modality == "CT" else "M"]
    header.PatientName = "Hübschmann^Zwölfender=山田^太郎=Yamada"
    header.PatientID, header.PatientSex = "PID-4711-77", "F"
    header.PatientBirthDate, header.PatientAge = "19510203", "072Y"
    header.OtherPatientIDs = ["PID-4711-77", "X77"]
    header.StudyDate, header.StudyTime = "20230405", "101112.5"
    header.AcquisitionDate, header.AcquisitionTime = "20230405", "101113"
    header.ReferringPhysicianName, header.OperatorsName = "Doc^Ref", "Op^Erator"
    header.StudyID, header.AccessionNumber = "S77", "ACC1234"
    header.StudyDescription = "Abdomen of Hübschmann"
    header.SeriesDescription = "Hübschmann PID-4711-77"
    header.ProtocolName = "Protocol for Zwölfender"
    header.ImageComments = "Seen with Yamada 山田"
    header.InstitutionName, header.Manufacturer = "Clinic Hübschmann", "ACME"
    header.ManufacturerModelName, header.StationName = "Scan 9", "STATION5"
    header.DeviceSerialNumber, header.SoftwareVersions = "SN123", ["V1", "V2"]
    header.PatientPosition, header.BodyPartExamined = "HFS", "ABDOMEN"
    header.AcquisitionNumber, header.SliceThickness = 3, "2.5"
    header.PositionReferenceIndicator = "XY"
    header.ContrastBolusAgent = "Agent for PID-4711-77"
    header.SmallestImagePixelValue, header.LargestImagePixelValue = 0, 10
    header.LossyImageCompression = "00"
    header.private_block(0x0029, "ACME", create=True).add_new(0x10, "LO", "Hübschmann")
    nested, request = Header(), Header()
    nested.PatientName, nested.PatientID = "Hübschmann^Zwölfender", "PID-4711-77"
    request.RequestedProcedureDescription = "For 山田 太郎"
    request.ReferencedPatientSequence = Sequence([nested])
    header.RequestAttributesSequence = Sequence([request])
    (_add_ct if modality == "CT" else _add_mr)(header)
    return header


def _add_ct(header: Header) -> None:
    header.KVP, header.GantryDetectorTilt, header.FilterType = "120", "0", "Yamada filter"
    header.ConvolutionKernel, header.Exposure = "B40f", 100
    header.RescaleSlope, header.RescaleIntercept = 1, -1024


def _add_mr(header: Header) -> None:
    header.ScanningSequence, header.SequenceVariant = ["SE", "IR"], ["SK", "SP"]
    header.ScanOptions, header.MRAcquisitionType = "PFP", "2D"
    header.RepetitionTime, header.EchoTime, header.InversionTime = "4000.5", "88", "120"
    header.EchoTrainLength, header.MagneticFieldStrength = 9, "3"
    header.ReceiveCoilName = "Coil Zwölfender"
