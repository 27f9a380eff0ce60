"""DICOM-CT-PD: a folder of CT projections as fan-beam sinograms, slice by slice.

The headers of all projections are read when the folder is opened; their pixels when a slice is
asked for, and then only those of the turn (and, if they are stored so, the detector rows) that
see it. `data.sinogram.rebinning` makes the fan; `frame` says which way round the image is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pydicom

from engine.data.readers.ct_pd.facts import say_scan, say_water
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
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from engine.spec.settings import option_name

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
        raise RequestError(f"{path} holds CT projections, not --kind {options.kind}.")
    if options.modality == "mr":
        raise RequestError(f"{path} holds CT projections, not MR data.")
    if options.scan_geometry == "parallel":
        raise RequestError(f"{path} was measured with a fan beam, not with parallel rays.")
    for name in TOLD_BY_THE_FILES:
        if getattr(options, name) is not None:
            raise RequestError(f"{option_name(name)}: {path} says this itself; leave it out.")
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
            warnings.append(
                f"There are {len(listed)} sets of projections (series, spectra or tubes); number "
                f"{number} with {len(views)} was opened. Choose another with --dataset 1 to "
                f"{len(listed)}."
            )
    numbers = {view.number for view in views}
    if len(numbers) > 1 and len(numbers) < len(views):
        warnings.append(f"{len(views) - len(numbers)} projections are there twice; one is used.")
        views = list({view.number: view for view in reversed(views)}.values())
    return scanner, views, warnings


def _conversion(path: Path, scanner: Scanner, described: Described) -> Conversion:
    unit, air = described.options.unit, described.options.scan_air
    if unit is None and scanner.log == "NO":
        raise RequestError(
            f"{path}: its projections are no line integrals (LogFlag is NO): say --unit "
            "transmission, or --unit counts with --scan-air."
        )
    unit = unit or "line-integral"
    if unit not in ("line-integral", "transmission", "counts"):
        raise RequestError(f"{path}: --unit {unit} is not a unit of projections.")
    if unit == "counts" and air is None:
        raise RequestError(f"{path}: --unit counts needs --scan-air, the counts of a ray in air.")
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
        dataset.add_fact("place in the patient", "not known", f"{option_name(turned[0])} was given")
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
