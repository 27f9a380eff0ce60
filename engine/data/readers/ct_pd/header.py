"""One DICOM-CT-PD file: what it says of the scan and of its own projection, and its pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from engine.data.readers.ct_pd.raw import Raw
from engine.data.readers.dicom.values import Values
from engine.data.sinogram.rebinning import Detector
from engine.files.path_safety import reading
from engine.spec.errors import RequestError

PER_VIEW = {
    "InstanceNumber",
    "DetectorFocalCenterAngularPosition",
    "DetectorFocalCenterAxialPosition",
    "SourceAngularPositionShift",
    "SourceAxialPositionShift",
    "SourceRadialDistanceShift",
    "RescaleSlope",
    "RescaleIntercept",
}
PLAIN = (ImplicitVRLittleEndian, ExplicitVRLittleEndian, ExplicitVRBigEndian)
NUMBER_TYPES = {(16, 0): "u2", (16, 1): "i2", (32, 0): "u4", (32, 1): "i4"}
WIDEST_FAN_RAD = 1.2  # on either side; a clinical scanner has 0.45


@dataclass(frozen=True)
class Scanner:
    """What all projections of a series have in common."""

    series: str
    spectrum: int
    source: int
    detector: Detector
    turn_views: int | None  # projections per rotation, as the file says
    kind: str  # AXIAL, HELICAL or ''
    spot_mode: str
    log: str  # YES, NO or ''
    mu_water: float | None  # as the file has it
    patient_position: str
    diameter_mm: float | None
    dtype: str
    transposed: bool  # stored column by column


@dataclass(frozen=True, slots=True)
class View:
    """What differs: where the detector's focal centre and the source were, and the pixels."""

    path: Path
    number: int
    phi_rad: float
    z_mm: float
    dphi_rad: float
    dz_mm: float
    drho_mm: float
    slope: float
    intercept: float
    offset: int  # of the first pixel in the file


class HeaderReader:
    """Reads file after file; what is the same as in the one before is not worked out again."""

    def __init__(self) -> None:
        self._common: tuple[str, dict[str, tuple[str, bytes]]] | None = None
        self._scanner: Scanner | None = None

    def read(self, raw: Raw) -> tuple[Scanner, View]:
        stored = raw.values.raw
        common = raw.syntax, {name: stored[name] for name in stored.keys() - PER_VIEW}
        if self._scanner is None or common != self._common:
            self._scanner, self._common = read_scanner(raw), common
        return self._scanner, read_view(raw, self._scanner)


def read_scanner(raw: Raw) -> Scanner:
    """What the file says of the scan, checked."""
    path, values = raw.path, raw.values
    asked = _Asked(path, values)
    detector = _detector(asked)
    if (values.integer("NumberOfFrames") or 1) != 1:
        raise RequestError(f"{path} holds several projections in one file; that is not supported.")
    if raw.syntax not in PLAIN:
        raise RequestError(f"{path} is compressed; uncompress the projections first.")
    dtype, transposed = _stored(asked, raw.syntax, detector)
    return Scanner(
        series=values.text("SeriesInstanceUID"),
        spectrum=values.integer("SpectrumIndex") or 1,
        source=values.integer("SourceIndex") or 1,
        detector=detector,
        turn_views=values.integer("NumberofSourceAngularSteps"),
        kind=values.text("TypeofProjectionData").upper(),
        spot_mode=values.text("FlyingFocalSpotMode").upper(),
        log=values.text("LogFlag").upper(),
        mu_water=_first(values, "WaterAttenuationCoefficient", "HUCalibrationFactor"),
        patient_position=values.text("PatientPosition").upper(),
        diameter_mm=values.number("DataCollectionDiameter"),
        dtype=dtype,
        transposed=transposed,
    )


def read_view(raw: Raw, scanner: Scanner) -> View:
    """What the file says of its own projection, checked; all of its pixels are there."""
    path, detector = raw.path, scanner.detector
    asked = _Asked(path, raw.values)
    wanted = detector.rows * detector.columns * int(scanner.dtype[-1])
    there = min(raw.length, raw.available)
    if there < wanted:
        raise RequestError(f"{path} is cut off: {there} of {wanted} bytes of pixels are there.")
    view = View(
        path=path,
        number=raw.values.integer("InstanceNumber") or 0,
        phi_rad=asked.number("DetectorFocalCenterAngularPosition"),
        z_mm=asked.number("DetectorFocalCenterAxialPosition"),
        dphi_rad=asked.shift("SourceAngularPositionShift", 0.5),
        dz_mm=asked.shift("SourceAxialPositionShift", 100.0),
        drho_mm=asked.shift("SourceRadialDistanceShift", 0.5 * detector.radius_mm),
        slope=asked.number("RescaleSlope"),
        intercept=asked.number("RescaleIntercept"),
        offset=raw.offset,
    )
    if abs(view.phi_rad) > 1e5 or abs(view.z_mm) > 1e5 or view.slope == 0:
        raise RequestError(f"{path}: its angle, its position or its RescaleSlope makes no sense.")
    return view


def read_rows(scanner: Scanner, view: View, first: int, last: int) -> NDArray[np.float64]:
    """Detector rows ``first`` to ``last`` (both included, from 0), rescaled: ``[row, column]``."""
    detector, size = scanner.detector, int(scanner.dtype[-1])
    count = last - first + 1
    begin, length = (0, detector.rows) if scanner.transposed else (first, count)
    wanted = length * detector.columns * size
    with reading(view.path), view.path.open("rb") as stream:
        stream.seek(view.offset + begin * detector.columns * size)
        data = stream.read(wanted)
    if len(data) < wanted:
        raise RequestError(f"{view.path} has become shorter since it was opened.")
    stored = np.frombuffer(data, scanner.dtype)
    if scanner.transposed:
        stored = stored.reshape(detector.columns, detector.rows)[:, first : last + 1].T
    return stored.reshape(count, detector.columns) * view.slope + view.intercept


class _Asked:
    """Numbers a projection cannot do without: missing ones are named."""

    def __init__(self, path: Path, values: Values) -> None:
        self.path, self.values = path, values

    def number(self, name: str) -> float:
        number = self.values.number(name)
        if number is None:
            raise RequestError(f"{self.path}: {name} is missing or is no finite number.")
        return number

    def positive(self, name: str) -> float:
        number = self.number(name)
        if not 0 < number < 1e6:
            raise RequestError(f"{self.path}: {name} is {number:g}, which makes no sense.")
        return number

    def count(self, name: str) -> int:
        number = self.positive(name)
        if number != int(number):
            raise RequestError(f"{self.path}: {name} is {number:g}, not a whole number.")
        return int(number)

    def shift(self, name: str, limit: float) -> float:
        """How far the source was deflected; a file without it has a source that stands still."""
        if name not in self.values or not self.values.raw[name][1]:
            return 0.0
        number = self.number(name)
        if abs(number) > limit:
            raise RequestError(f"{self.path}: {name} is {number:g}, which makes no sense.")
        return number


def _detector(asked: _Asked) -> Detector:
    path, values = asked.path, asked.values
    shape = values.text("DetectorShape").upper()
    if shape not in ("CYLINDRICAL", "FLAT"):
        named = "SPHERICAL" if shape == "SPHERICAL" else "not stated or unknown"
        raise RequestError(
            f"{path}: its detector's shape is {named}; only CYLINDRICAL and FLAT can be read."
        )
    central = values.vector("DetectorCentralElement", 2)
    if central is None:
        raise RequestError(f"{path}: DetectorCentralElement is missing or not two numbers.")
    detector = Detector(
        rows=asked.count("NumberofDetectorRows"),
        columns=asked.count("NumberofDetectorColumns"),
        row_mm=asked.positive("DetectorElementAxialSpacing"),
        column_mm=asked.positive("DetectorElementTransverseSpacing"),
        central_column=central[0],
        central_row=central[1],
        radius_mm=asked.positive("DetectorFocalCenterRadialDistance"),
        distance_mm=asked.positive("ConstantRadialDistance"),
        flat=shape == "FLAT",
    )
    inside = 1 <= central[0] <= detector.columns and 0.5 <= central[1] <= detector.rows + 0.5
    if detector.columns < 2 or not inside:
        raise RequestError(f"{path}: DetectorCentralElement is not on the detector.")
    if detector.distance_mm < detector.radius_mm:
        raise RequestError(f"{path}: its detector lies between the source and the rotation axis.")
    reach = float(np.abs(detector.positions_mm()).max()) / detector.distance_mm
    if (math.atan(reach) if detector.flat else reach) > WIDEST_FAN_RAD:
        raise RequestError(f"{path}: its detector is too wide for its distance from the source.")
    return detector


def _stored(asked: _Asked, syntax: str, detector: Detector) -> tuple[str, bool]:
    """How a pixel is stored, and whether columns follow one another instead of rows."""
    path, values = asked.path, asked.values
    bits, signed = values.integer("BitsAllocated"), values.integer("PixelRepresentation") or 0
    kind = NUMBER_TYPES.get((bits or 0, signed))
    if kind is None or (values.integer("SamplesPerPixel") or 1) != 1:
        raise RequestError(f"{path}: its pixels are not stored as one number of 16 or 32 bits.")
    shape = asked.count("Rows"), asked.count("Columns")
    own = detector.rows, detector.columns
    if shape not in (own, own[::-1]):
        raise RequestError(
            f"{path}: its image of {shape[0]} x {shape[1]} is not its detector of "
            f"{own[0]} x {own[1]} elements."
        )
    order = ">" if syntax == ExplicitVRBigEndian else "<"
    return order + kind, shape != own


def _first(values: Values, *names: str) -> float | None:
    for name in names:
        number = values.number(name)
        if number is not None and number > 0:
            return number
    return None
