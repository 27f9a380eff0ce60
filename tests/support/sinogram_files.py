"""Files of measured sinograms, written from the published layouts by code of their own."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from ct_ellipses import Ellipse, line_integrals
from PIL import Image

from engine.physics.geometry import CTGeometry

WHITE, DARK = 50_000.0, 120.0

# Nothing about it is symmetric: every mirror and every turn shows.
PHANTOM = [
    Ellipse(1.0, -2.0, 22.0, 27.0, 0.2, 0.02),
    Ellipse(9.0, 8.0, 5.0, 8.0, 0.3, 0.01),
    Ellipse(-9.0, -11.0, 4.0, 2.5, 0.0, -0.015),
    Ellipse(6.0, -15.0, 2.5, 2.5, 0.0, 0.02),
]


def scan(
    kind: str = "parallel",
    views: int = 90,
    span: float = 180.0,
    start: float = 0.0,
    offset_bins: float = 0.0,
    detectors: int = 80,
) -> CTGeometry:
    """A scan of the phantom on 80 bins, with the image grid that the dataset makes of it."""
    is_fan = kind == "fan"
    geometry = CTGeometry.sparse_view(
        views,
        span,
        start,
        size=8,
        pixel_mm=0.1,
        kind=kind,
        detectors=detectors,
        pitch_mm=2.0 if is_fan else 1.0,
        source_origin_mm=150.0 if is_fan else None,
        source_detector_mm=300.0 if is_fan else None,
    )
    return replace(geometry, detector_offset_mm=offset_bins * geometry.pitch_mm)


def sinogram(geometry: CTGeometry) -> np.ndarray:
    return line_integrals(PHANTOM, geometry).astype(np.float32)


def two_rows(values: np.ndarray) -> np.ndarray:
    """Projections ``[views, 2, detectors]``: the scan in row 1, half of it in row 0."""
    return np.stack([values / 2, values], axis=1)


def counts(values: np.ndarray, white: Any = WHITE, dark: Any = DARK) -> np.ndarray:
    return np.round(dark + (white - dark) * np.exp(-values.astype(np.float64)))


def fields(detectors: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """White and dark levels ``[2 rows, detectors]`` that differ from bin to bin."""
    random = np.random.default_rng(seed)
    white = WHITE * (0.8 + 0.4 * random.random((2, detectors)))
    return np.round(white), np.round(DARK * (0.5 + random.random((2, detectors))))


# -- HDF5 ----------------------------------------------------------------------------------------


def data_exchange(path: Path, values: np.ndarray, theta_deg: np.ndarray | None) -> Path:
    white, dark = fields(values.shape[1])
    data = counts(two_rows(values), white[None], dark[None])
    with h5py.File(path, "w") as file:
        file["implements"] = "exchange"
        group = file.create_group("exchange")
        group["data"] = data.astype(np.uint16)
        group["data_white"] = np.stack([white - 10, white + 10]).astype(np.uint16)
        group["data_dark"] = np.stack([dark - 2, dark + 2]).astype(np.uint16)
        if theta_deg is not None:
            group["theta"] = theta_deg
    return path


def nxtomo(path: Path, values: np.ndarray, theta_deg: np.ndarray, unit: str = "degree") -> Path:
    """Dark, flat, projections, a bad frame in their middle, and a flat at the end."""
    white, dark = fields(values.shape[1])
    data = counts(two_rows(values), white[None], dark[None])
    middle = len(data) // 2
    frames = np.concatenate(
        [
            dark[None],
            white[None] - 5,
            data[:middle],
            0 * white[None],
            data[middle:],
            white[None] + 5,
        ]
    )
    key = [2, 1] + [0] * middle + [3] + [0] * (len(data) - middle) + [1]
    angle = np.concatenate([[0, 0], theta_deg[:middle], [77.0], theta_deg[middle:], [0]])
    if unit == "rad":
        angle = np.deg2rad(angle)
    with h5py.File(path, "w") as file:
        entry = file.create_group("entry0000")
        entry.attrs["NX_class"] = "NXentry"
        entry["definition"] = "NXtomo"
        detector = entry.create_group("instrument/detector")
        entry["instrument"].attrs["NX_class"] = "NXinstrument"
        detector.attrs["NX_class"] = "NXdetector"
        detector["data"] = frames.astype(np.uint16)
        detector["image_key"] = np.array(key)
        detector["x_pixel_size"] = 1e-3
        detector["x_pixel_size"].attrs["units"] = "m"
        sample = entry.create_group("sample")
        sample.attrs["NX_class"] = "NXsample"
        sample["rotation_angle"] = angle
        sample["rotation_angle"].attrs["units"] = unit
        entry["data/rotation_angle"] = h5py.SoftLink("/entry0000/sample/rotation_angle")
    return path


# -- MATLAB --------------------------------------------------------------------------------------


def fips_parameters(geometry: CTGeometry, style: str = "post") -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "projectName": "phantom",
        "geometryType": "fan-beam",
        "angles": np.rad2deg(geometry.angles_rad)[None, :],
        "distanceSourceOrigin": geometry.source_origin_mm,
        "distanceSourceDetector": geometry.source_detector_mm,
        "distanceUnit": "mm",
        "numDetectorsPost": float(geometry.detectors),
    }
    if style == "post":
        parameters["pixelSize"] = geometry.pitch_mm / 4
        parameters["pixelSizePost"] = geometry.pitch_mm
    else:
        parameters["pixelSize"] = geometry.pitch_mm / 4
        parameters["binning"] = 4.0
    return parameters


def fips_v5(path: Path, values: np.ndarray, geometry: CTGeometry, name: str, **how: Any) -> Path:
    import scipy.io

    struct_ = {
        "type": "2D",
        "sinogram": values.astype(np.float64),
        "parameters": fips_parameters(geometry, how.pop("style", "post")),
    }
    scipy.io.savemat(path, {name: struct_}, **how)
    return path


def fips_v73(path: Path, values: np.ndarray, geometry: CTGeometry, name: str) -> Path:
    """HDF5 behind MATLAB's 512 bytes; arrays transposed, texts as 16-bit characters."""
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group(name)
        group.attrs["MATLAB_class"] = np.bytes_("struct")
        _store_v73(group, "sinogram", values.astype(np.float64))
        inner = group.create_group("parameters")
        inner.attrs["MATLAB_class"] = np.bytes_("struct")
        for key, value in fips_parameters(geometry).items():
            _store_v73(inner, key, value)
    return _with_userblock(path)


def fips_v73_array(path: Path, values: list[np.ndarray], geometry: CTGeometry, name: str) -> Path:
    """A struct array: its fields are lists of references to objects elsewhere in the file."""
    with h5py.File(path, "w", userblock_size=512) as file:
        refs = file.create_group("#refs#")
        group = file.create_group(name)
        group.attrs["MATLAB_class"] = np.bytes_("struct")
        sinograms, parameters = [], []
        for number, one in enumerate(values):
            _store_v73(refs, f"s{number}", one.astype(np.float64))
            inner = refs.create_group(f"p{number}")
            inner.attrs["MATLAB_class"] = np.bytes_("struct")
            for key, value in fips_parameters(geometry).items():
                _store_v73(inner, key, value)
            sinograms.append(refs[f"s{number}"].ref)
            parameters.append(inner.ref)
        for key, references in (("sinogram", sinograms), ("parameters", parameters)):
            group.create_dataset(key, data=np.array([references]).T, dtype=h5py.ref_dtype)
    return _with_userblock(path)


def _with_userblock(path: Path) -> Path:
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H", 0x0200) + b"IM")
    return path


def _store_v73(group: h5py.Group, name: str, value: Any) -> None:
    if isinstance(value, str):
        codes = np.frombuffer(value.encode("utf-16-le"), "<u2")
        group[name] = codes[:, None]
        group[name].attrs["MATLAB_class"] = np.bytes_("char")
    else:
        group[name] = np.atleast_2d(value).T
        group[name].attrs["MATLAB_class"] = np.bytes_("double")


# -- stacks, raw numbers, sidecars ----------------------------------------------------------------


def mrc(
    path: Path,
    stack: np.ndarray,
    mode: int,
    order: str = "<",
    extended: bytes = b"",
    pixel_mm: float = 1.0,
) -> Path:
    """MRC2014; ``stack`` is [section, y, x]."""
    dtype = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}[mode]
    nz, ny, nx = stack.shape
    cell = [n * pixel_mm * 1e7 for n in (nx, ny, nz)]  # in Angstrom
    header = struct.pack(order + "10i", nx, ny, nz, mode, 0, 0, 0, nx, ny, nz)
    header += struct.pack(order + "6f", *cell, 90, 90, 90) + struct.pack(order + "3i", 1, 2, 3)
    header += struct.pack(order + "3f", stack.min(), stack.max(), stack.mean())
    header += struct.pack(order + "2i", 0, len(extended))
    header = header.ljust(208, b"\0") + b"MAP "
    header += b"\x44\x44\0\0" if order == "<" else b"\x11\x11\0\0"
    path.write_bytes(header.ljust(1024, b"\0") + extended + stack.astype(order + dtype).tobytes())
    return path


def tiff_pages(path: Path, stack: np.ndarray) -> Path:
    pages = [Image.fromarray(np.ascontiguousarray(page)) for page in stack]
    pages[0].save(path, save_all=True, append_images=pages[1:])
    return path


def tiff_folder(path: Path, stack: np.ndarray) -> Path:
    """Numbers without leading zeros: only natural sorting puts them in order."""
    path.mkdir()
    for number, page in enumerate(stack):
        Image.fromarray(np.ascontiguousarray(page)).save(path / f"view_{number}.tif")
    return path


def sidecar(path: Path, **values: Any) -> Path:
    path.write_text(json.dumps(values))
    return path


def told(geometry: CTGeometry, **more: Any) -> dict[str, Any]:
    """The keys that describe a scan completely."""
    values: dict[str, Any] = {
        "kind": "sinogram",
        "unit": "line-integral",
        "scan_geometry": geometry.kind,
        "scan_pitch_mm": geometry.pitch_mm,
        "scan_offset_mm": geometry.detector_offset_mm,
        "angles_deg": np.rad2deg(geometry.angles_rad).tolist(),
    }
    if geometry.kind == "fan":
        values["scan_source_origin_mm"] = geometry.source_origin_mm
        values["scan_source_detector_mm"] = geometry.source_detector_mm
    return {**values, **more}
