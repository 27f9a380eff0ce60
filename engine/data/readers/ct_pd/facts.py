"""What to say about a DICOM-CT-PD scan: where its numbers come from, what was assumed."""

from __future__ import annotations

import math

import numpy as np

from engine.data.readers.ct_pd.fan import Conversion, FanScan
from engine.data.readers.ct_pd.header import Scanner
from engine.data.sidecar import Described
from engine.data.sinogram.dataset import SinogramDataset
from engine.physics.units import MU_WATER_PER_MM

PER_CM = 0.1  # water attenuates 0.02 / mm; a number above this one is in 1 / cm


def say_water(dataset: SinogramDataset, scanner: Scanner, described: Described) -> None:
    stated, told = scanner.mu_water, described.options.mu_water
    if told is not None:
        dataset.mu_water, origin = told, described.origin("mu_water")
    elif stated is None:
        dataset.mu_water, origin = MU_WATER_PER_MM, "assumed, as at about 70 keV"
        dataset.warnings.append(
            f"HU assume that water attenuates {MU_WATER_PER_MM:g} / mm: "
            "WaterAttenuationCoefficient is missing; --mu-water sets it."
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
        dataset.warnings.append(
            "PatientPosition is missing: head first and supine is assumed, and the place in the "
            "patient is not known. If the patient lay feet first the image is mirrored: give "
            "--scan-direction cw --scan-flip."
        )
    dataset.warnings.append(
        "Which way angles and detector columns count is taken from the format's manual; some "
        "scanners' files differ, which the geometry check finds."
    )


def _word(text: str) -> str:
    return text if text.isalnum() and len(text) <= 16 else "set"
