"""``CtData`` structs of the Finnish Inverse Problems Society: sinogram and parameters.

The layout is that of the HelTomo toolbox, whose angles and detector order are those of ASTRA's
flat fan and therefore ours. They open without a question.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from engine.data.sidecar import describe
from engine.data.sinogram.dataset import Opener, SinogramDataset, open_scan
from engine.data.sinogram.scan_geometry import Scan
from engine.data.sinogram.units import Rows, millimetres
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

PREFERRED = ("CtData", "CtDataFull", "CtDataLimited")
DISTANCES = ("distanceSourceOrigin", "distanceSourceDetector")


def find_structs(variables: dict[str, Any]) -> list[dict[str, Any]]:
    """The slices (one struct each) of the first variable that holds such data.

    Some files have the fields as variables of their own instead.
    """
    names = sorted(variables, key=lambda name: (name not in PREFERRED, PREFERRED.count(name)))
    for name in names:
        found = _structs(variables[name], 0)
        if found:
            return found
    if all(name in variables for name in ("sinogram", "angles", *DISTANCES)):
        return [{"sinogram": variables["sinogram"], "parameters": variables}]
    return []


def _structs(value: Any, depth: int) -> list[dict[str, Any]]:
    """Structs with a sinogram and parameters, at any place a few levels down."""
    if isinstance(value, list):
        found = [struct for one in value for struct in _structs(one, depth)]
        return found
    if not isinstance(value, dict) or depth > 3:
        return []
    if isinstance(value.get("sinogram"), np.ndarray) and isinstance(
        _single(value.get("parameters")), dict
    ):
        return [{"sinogram": value["sinogram"], "parameters": _single(value["parameters"])}]
    for name in (*PREFERRED, *value):
        found = _structs(value.get(name), depth + 1)
        if found:
            return found
    return []


def open_fips(
    path: Path, options: InputOptions, structs: list[dict[str, Any]], reopen: Opener
) -> SinogramDataset:
    described = describe(path, options)
    sinograms = [_sinogram(path, struct) for struct in structs]
    scans = [_scan(path, s["parameters"], y) for s, y in zip(structs, sinograms, strict=True)]
    first = scans[0]
    for scan in scans[1:]:
        same = all(
            np.array_equal(getattr(scan, key), getattr(first, key))
            for key in ("views", "detectors", "pitch_mm", "angles_deg", "source_origin_mm")
        )
        if not same:
            raise RequestError(f"{path.name} holds scans of different geometries.")
    dataset = open_scan(
        path,
        options,
        described,
        first,
        lambda number: Rows(sinograms[number].astype(np.float32)),
        len(sinograms),
        reopen,
    )
    dataset.add_fact("unit", "line-integral", "CtData sinograms are logarithms already")
    declared = _number(structs[0]["parameters"], "numDetectorsPost")
    if declared is not None and declared != first.detectors:
        dataset.warnings.append(
            f"The parameters say {declared:g} detector bins and the sinogram has "
            f"{first.detectors}; the sinogram is believed."
        )
    return dataset


def _sinogram(path: Path, struct: dict[str, Any]) -> np.ndarray:
    """``[views, detectors]``; the number of angles says which axis is which."""
    sinogram = struct["sinogram"]
    angles = struct["parameters"].get("angles")
    if sinogram.ndim != 2 or not sinogram.size or sinogram.dtype.kind not in "fiu":
        raise RequestError(f"{path.name}: the sinogram has the shape {sinogram.shape}.")
    views = angles.size if isinstance(angles, np.ndarray) else 0
    if views == sinogram.shape[0]:
        return sinogram
    if views == sinogram.shape[1]:
        return sinogram.T
    raise RequestError(f"{path.name}: {views} angles do not fit a sinogram of {sinogram.shape}.")


def _scan(path: Path, parameters: dict[str, Any], sinogram: np.ndarray) -> Scan:
    distance_mm = millimetres(_text(parameters, "distanceUnit") or "mm", path.name)
    origin, detector = (_number(parameters, name) for name in DISTANCES)
    kind = _text(parameters, "geometryType").lower()
    return Scan(
        views=sinogram.shape[0],
        detectors=sinogram.shape[1],
        angles_deg=np.asarray(parameters["angles"], dtype=np.float64).reshape(-1),
        kind="parallel" if "parallel" in kind else "fan",
        pitch_mm=_pitch(path, parameters),
        source_origin_mm=None if origin is None else origin * distance_mm,
        source_detector_mm=None if detector is None else detector * distance_mm,
        origin="the file's parameters",
    )


def _pitch(path: Path, parameters: dict[str, Any]) -> float | None:
    """pixelSizePost, or pixelSize times the binning made after the scan."""
    unit = millimetres(_text(parameters, "pixelSizeUnit") or "mm", path.name)
    pitch = _number(parameters, "pixelSizePost")
    if pitch is None:
        pitch = _number(parameters, "pixelSize")
        if pitch is None:
            return None
        binning = _number(parameters, "binningPost")
        if binning is None:
            # a size before binning may be kept beside the one after it
            raw = _number(parameters, "pixelSizeRaw")
            binning = _number(parameters, "binning") if raw in (None, pitch) else None
        pitch *= binning or 1.0
    return pitch * unit if pitch > 0 else None


def _number(parameters: dict[str, Any], name: str) -> float | None:
    value = parameters.get(name)
    if isinstance(value, str):  # '4' or '4x4'
        digits = value.lower().split("x")[0].strip()
        return float(digits) if digits.isdecimal() and len(digits) < 6 else None
    if not isinstance(value, np.ndarray) or value.size != 1 or value.dtype.kind not in "fiu":
        return None
    number = float(value.reshape(-1)[0])
    return number if math.isfinite(number) else None


def _text(parameters: dict[str, Any], name: str) -> str:
    value = parameters.get(name)
    return value if isinstance(value, str) else ""


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value
