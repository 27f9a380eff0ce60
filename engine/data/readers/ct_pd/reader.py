"""DICOM-CT-PD: a folder of CT projections as fan-beam sinograms, slice by slice.

The headers of all projections are read when the folder is opened; their pixels when a slice is
asked for, and then only those of the turn (and, if they are stored so, the detector rows) that
see it. `data.sinogram.rebinning` makes the fan; `frame` says which way round the image is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pydicom

from engine.data.readers.ct_pd.fan import Conversion, FanScan
from engine.data.readers.ct_pd.frame import frame_of
from engine.data.readers.ct_pd.header import HeaderReader, Scanner, View
from engine.data.readers.ct_pd.raw import MARKS, read_raw
from engine.data.readers.dicom.files import find_files, walk_folder
from engine.data.readers.dicom.magic import is_dicom
from engine.data.readers.dicom.scan import open_file, quiet_pydicom
from engine.data.sidecar import Described, describe
from engine.data.sinogram.dataset import SinogramDataset
from engine.data.sinogram.scan_geometry import layout
from engine.physics.units import MU_WATER_PER_MM
from engine.spec.errors import RequestError, Sentence
from engine.spec.input_options import InputOptions

TOLD_BY_THE_FILES = (
    "scan_range",
    "scan_pitch_mm",
    "scan_source_origin_mm",
    "scan_source_detector_mm",
    "axes",
)
TURNING = ("scan_start", "scan_direction", "scan_flip")  # with these the image lies otherwise
Groups = dict[tuple[str, int, int], tuple[Scanner, list[View]]]


def is_ct_pd(source: Path | pydicom.Dataset) -> bool:
    """Whether a file, or the first DICOM file of a folder, or a header is a CT projection."""
    if isinstance(source, pydicom.Dataset):
        return any(tag in source for tag in MARKS)
    path = next(walk_folder(source), None) if source.is_dir() else source
    try:
        return path is not None and is_dicom(path) and read_raw(path).is_projection
    except RequestError:
        return False


def open_ct_pd(path: Path, options: InputOptions) -> SinogramDataset:
    """Open the projections in a folder and the folders below it."""
    files, warnings = find_files(path)
    if files == [path]:
        one = "is one CT projection of many" if is_ct_pd(path) else "is not a CT projection"
        raise RequestError(f"{path} {one}: give the folder that holds all projections.")
    dataset = open_ct_pd_files(path, files, options)
    dataset.warnings += warnings
    return dataset


def open_ct_pd_files(path: Path, files: Sequence[Path], options: InputOptions) -> SinogramDataset:
    """Open the projections among ``files``; ``path`` names the whole."""
    described = describe(path, options)
    _check_options(path, described)
    groups, others = _read_headers(path, files)
    scanner, views, warnings = _choose(path, groups, described.options.dataset)
    if others:
        warnings.append(f"{others} files are not CT projections and were left out.")
    scan = FanScan(path.name, scanner, views, frame_of(scanner.patient_position))
    to_integrals = _conversion(path, scanner, described)
    reopen = partial(open_ct_pd_files, path, files)
    dataset = _dataset(scan, options, described, to_integrals, reopen)
    dataset.warnings[:0] = warnings
    return dataset


def _check_options(path: Path, described: Described) -> None:
    options = described.options
    if options.kind not in (None, "sinogram"):
        raise RequestError(f"{path} holds CT projections, not ⟦kind⟧ {options.kind}.")
    if options.modality == "mr":
        raise RequestError(f"{path} holds CT projections, not MR data.")
    if options.scan_geometry == "parallel":
        raise RequestError(f"{path} was measured with a fan beam, not with parallel rays.")
    for name in TOLD_BY_THE_FILES:
        if getattr(options, name) is not None:
            raise RequestError(f"⟦{name}⟧: {path} says this itself; leave it out.")
    if described.angles_deg is not None:
        raise RequestError(f"{path} says its angles itself; leave angles_deg out of the sidecar.")


def _read_headers(path: Path, files: Sequence[Path]) -> tuple[Groups, int]:
    """Series, spectrum and source -> scanner and views; and how many files are something else."""
    groups: Groups = {}
    others, reader = 0, HeaderReader()
    for file in files:
        try:
            raw = read_raw(file)
        except RequestError:
            others += 1
            continue
        if not raw.is_projection:
            others += 1
            continue
        scanner, view = reader.read(raw)
        first, views = groups.setdefault(
            (scanner.series, scanner.spectrum, scanner.source), (scanner, [])
        )
        if scanner is not first and scanner != first:
            raise RequestError(f"{file} is of another size, detector or kind than its series.")
        views.append(view)
    if not groups:
        raise RequestError(f"{path} holds no CT projections (DICOM-CT-PD).")
    return groups, others


def _choose(
    path: Path, groups: Groups, wanted: str | None
) -> tuple[Scanner, list[View], list[str]]:
    """The group asked for by number or UID, else the largest; each projection once."""
    warnings: list[str] = []
    listed = list(groups.values())
    if wanted is not None:
        named = [group for n, group in enumerate(listed, 1) if wanted in (str(n), group[0].series)]
        if not named:
            raise RequestError(
                f"{path} has no projections '{wanted}': give a number from 1 to {len(listed)} or a "
                "SeriesInstanceUID."
            )
        scanner, views = named[0]
    else:
        scanner, views = max(listed, key=lambda group: len(group[1]))
        if len(listed) > 1:
            number = listed.index((scanner, views)) + 1
            said = (
                f"There are {len(listed)} sets of projections (series, spectra or tubes); number "
                f"{number} with {len(views)} was opened. Choose another with ⟦dataset⟧ 1 to "
                f"{len(listed)}."
            )
            warnings.append(Sentence(said))
    numbers = {view.number for view in views}
    if len(numbers) > 1 and len(numbers) < len(views):
        warnings.append(f"{len(views) - len(numbers)} projections are there twice; one is used.")
        views = list({view.number: view for view in reversed(views)}.values())
    return scanner, views, warnings


def _conversion(path: Path, scanner: Scanner, described: Described) -> Conversion:
    unit, air = described.options.unit, described.options.scan_air
    if unit is None and scanner.log == "NO":
        raise RequestError(
            f"{path}: its projections are no line integrals (LogFlag is NO): say ⟦unit⟧ "
            "transmission, or ⟦unit⟧ counts with ⟦scan_air⟧."
        )
    unit = unit or "line-integral"
    if unit not in ("line-integral", "transmission", "counts"):
        raise RequestError(f"{path}: ⟦unit⟧ {unit} is not a unit of projections.")
    if unit == "counts" and air is None:
        raise RequestError(f"{path}: ⟦unit⟧ counts needs ⟦scan_air⟧, the counts of a ray in air.")
    return Conversion(unit, air)


def _dataset(
    scan: FanScan,
    options: InputOptions,
    described: Described,
    to_integrals: Conversion,
    reopen: partial[SinogramDataset],
) -> SinogramDataset:
    scanner, frame = scan.scanner, scan.frame
    made = layout(scan.name, scan.scan(), described)
    size, pixel = made.geometry.image_size, made.geometry.pixel_mm
    slices = scan.slices_mm
    dataset = SinogramDataset(
        modality="CT",
        description=scan.name,
        count=slices.size,
        image_size=size,
        pixel_mm=(pixel, pixel),
        files=tuple(view.path for view in scan.views),
        facts=list(made.facts),
        headers=partial(_header, scan),
        layout=made,
        rows=lambda number: scan.read(number, to_integrals),
        options=options,
        reopen=reopen,
    )
    turned = [name for name in TURNING if getattr(described.options, name) is not None]
    if turned:
        dataset.add_fact("place in the patient", "not known", f"⟦{turned[0]}⟧ was given")
    elif frame.known:
        dataset.placements = frame.placements(
            frame.head_mm(slices), size, pixel, scanner.detector.slice_mm
        )
    say_water(dataset, scanner, described)
    say_scan(dataset, scan, to_integrals)
    return dataset


def _header(scan: FanScan, number: int) -> pydicom.Dataset:
    """That of the projection taken nearest to the slice; its frame of reference is not ours."""
    nearest = int(np.abs(scan.trajectory.z_mm - scan.slices_mm[number]).argmin())
    path = scan.views[nearest].path
    with quiet_pydicom(path), open_file(path) as stream:
        header = pydicom.dcmread(stream, stop_before_pixels=True)
        for keyword in ("FrameOfReferenceUID", "PositionReferenceIndicator"):
            if keyword in header:
                delattr(header, keyword)
        return header


PER_CM = 0.1  # water attenuates 0.02 / mm; a number above this one is in 1 / cm


def say_water(dataset: SinogramDataset, scanner: Scanner, described: Described) -> None:
    stated, told = scanner.mu_water, described.options.mu_water
    if told is not None:
        dataset.mu_water, origin = told, described.origin("mu_water")
    elif stated is None:
        dataset.mu_water, origin = MU_WATER_PER_MM, "assumed, as at about 70 keV"
        dataset.warn(
            f"HU assume that water attenuates {MU_WATER_PER_MM:g} / mm: "
            "WaterAttenuationCoefficient is missing; ⟦mu_water⟧ sets it."
        )
    else:
        dataset.mu_water, origin = stated, "WaterAttenuationCoefficient"
        if stated > PER_CM:
            dataset.mu_water = stated / 10
            dataset.warnings.append(
                f"WaterAttenuationCoefficient is {stated:g}, which can only be meant per cm."
            )
    dataset.add_fact("attenuation of water", f"{dataset.mu_water:g} / mm", origin)


def say_scan(dataset: SinogramDataset, scan: FanScan, to_integrals: Conversion) -> None:
    scanner, detector = scan.scanner, scan.scanner.detector
    trajectory, say, fact = scan.trajectory, dataset.warnings.append, dataset.add_fact
    kind = "helical" if trajectory.helical else "axial"
    fact("scan", f"{kind}, {len(scan.views)} projections", "the angles and positions of the views")
    if scanner.kind and scanner.kind != kind.upper():
        say(f"TypeofProjectionData says otherwise, but the positions are those of a {kind} scan.")
    shape = "flat" if detector.flat else "cylindrical"
    elements = f"{shape}, {detector.rows} rows of {detector.columns}"
    fact("detector", elements, "DetectorShape, NumberofDetectorRows, NumberofDetectorColumns")
    fact("slice spacing", f"{detector.slice_mm:.4g} mm", "height of a detector row at the axis")
    if scanner.diameter_mm is not None:
        fact("scanned diameter", f"{scanner.diameter_mm:g} mm", "DataCollectionDiameter")
    if trajectory.helical:
        fact("table feed", f"{trajectory.feed_mm:.4g} mm per turn", "the positions of the views")
    if to_integrals.unit == "line-integral" and scanner.log != "YES":
        say("LogFlag is missing: the projections are taken as line integrals.")
    fact("values", to_integrals.unit, "LogFlag" if scanner.log else "assumed or asked for")
    if trajectory.missing:
        say(f"About {trajectory.missing} projections are missing; their neighbours stand in.")
    _say_spot(dataset, scan)
    _say_cone(dataset, scan)
    _say_frame(dataset, scan)


def _say_spot(dataset: SinogramDataset, scan: FanScan) -> None:
    heights = {round(view.dz_mm, 3) for view in scan.views}
    moving = len(scan.spots) > 1 or len(heights) > 1
    words = "fixed"
    if moving:
        words = f"{len(scan.spots)} places in the plane, {len(heights)} along z"
    dataset.add_fact("focal spot", words, "Source...Shift of every view")
    mode = scan.scanner.spot_mode
    if mode not in ("", "FFSNONE") and not moving:
        dataset.warnings.append(f"FlyingFocalSpotMode is {_word(mode)}, yet no view has a shift.")
    if not scan.steady:
        dataset.warnings.append("The focal spot moves irregularly: its mean place is taken.")
    if len(scan.spots) > 1:
        dataset.warnings.append(
            "The focal spot moves in the plane: the views of each place are interpolated to the "
            "same angles and averaged, which blurs a little."
        )


def _say_cone(dataset: SinogramDataset, scan: FanScan) -> None:
    detector, trajectory = scan.scanner.detector, scan.trajectory
    if detector.rows == 1:
        return
    degrees = math.degrees(math.atan(detector.half_height_mm / detector.distance_mm))
    how = (
        "each slice is made from the rays of the nearest turn that cross it near the axis"
        if trajectory.helical
        else "each slice is made from the rays that cross it near the axis"
    )
    dataset.warnings.append(
        f"A cone of rays is taken as flat fans: rays are inclined to their slice by up to "
        f"{degrees:.1f} degrees; {how}."
    )
    steepest = min(float(fan.middle.min()) for fan in scan.fans)
    seen = 2 * (detector.half_height_mm - detector.row_mm / 2) * steepest
    if trajectory.feed_mm > seen:
        dataset.warnings.append(
            f"The table moves {trajectory.feed_mm:.3g} mm per turn and the detector sees "
            f"{seen:.3g} mm at the edge of the fan: some rays are replaced by those of the "
            "outermost row."
        )


def _say_frame(dataset: SinogramDataset, scan: FanScan) -> None:
    origin = "PatientPosition" if scan.frame.known else "assumed"
    dataset.add_fact("patient", scan.frame.words, origin)
    heads = scan.frame.head_mm(scan.slices_mm)
    where = f"z {float(np.min(heads)):.2f} to {float(np.max(heads)):.2f} mm"
    dataset.add_fact("slices", where, "DetectorFocalCenterAxialPosition")
    if scan.frame.known:
        dataset.add_fact("x and y", "0 at the rotation axis", "assumed: not in the files")
    else:
        dataset.warn(
            "PatientPosition is missing: head first and supine is assumed, and the place in the "
            "patient is not known. If the patient lay feet first the image is mirrored: give "
            "⟦scan_direction⟧ cw ⟦scan_flip⟧."
        )
    dataset.warnings.append(
        "Which way angles and detector columns count is taken from the format's manual; some "
        "scanners' files differ, which the geometry check finds."
    )


def _word(text: str) -> str:
    return text if text.isalnum() and len(text) <= 16 else "set"
