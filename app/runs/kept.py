"""A run's pictures to the disk when it ends, and back when it is opened from the library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QBuffer, QIODevice, Qt
from PySide6.QtGui import QImage

from app.runs.snapshots import Snapshots
from engine.files.atomic import write_bytes_atomic
from engine.files.kept_result import KeptResult, finite
from engine.files.run_library_entry import THUMBNAIL
from engine.spec.numbers import numbers_in

THUMBNAIL_PX: Final = 96
DRAWN: Final = ("planes", "psd", "psd_images")  # tables of arrays in a Frame
SAME_AS_RESULT: Final = ("image", "z")
CURVES: Final = {"target", "residual", "homogenized"}
WINDOW: Final = {"CT": (40.0, 400.0)}  # centre and width in HU; MR from its darkest to 99 %


def keep_pictures(
    record_path: Path,
    images: np.ndarray,
    snapshots: Snapshots,
    frame: Any,
    slices: Sequence[int],
    modality: str,
    pixel_mm: tuple[float, float] | None,
    sample: int = 0,
) -> None:
    """The images, the iterations to scrub through, the spectra and planes of the last one."""
    arrays: dict[str, np.ndarray] = {}
    told: dict[str, Any] = {"slices": list(slices), "sample": sample, "pixel_mm": pixel_mm}
    if frame is not None:
        for table in DRAWN:
            drawn = getattr(frame, table).items()
            arrays |= {f"{table}.{name}": a for name, a in drawn if name not in SAME_AS_RESULT}
        if frame.frequency is not None:
            arrays["frequency"] = frame.frequency
        told["frame"] = {
            **{name: getattr(frame, name) for name in ("k", "K", "nfe")},
            "sigma": float(frame.sigma),
            "units": frame.units,
            **{name: finite(getattr(frame, name)) for name in ("norms", "metrics", "seconds")},
        }
    steps = [found for k in snapshots.iterations() if (found := snapshots.at(k)) is not None]
    KeptResult(images, steps, arrays, told).write(KeptResult.path_beside(record_path))
    thumbnail = record_path.with_name(record_path.stem + THUMBNAIL)
    write_bytes_atomic(thumbnail, png_of(images[len(images) // 2], modality))


def png_of(image: np.ndarray, modality: str) -> bytes:
    """Small and grey; PySide's QImage may be used in any thread."""
    if modality in WINDOW:
        centre, width = WINDOW[modality]
        low, size = centre - width / 2, width
    else:
        low = float(np.nanmin(image))
        size = float(np.nanquantile(image, 0.99)) - low
    shares = np.nan_to_num((image - low) / max(size, 1e-12)).clip(0, 1)
    grey = np.ascontiguousarray((255 * shares).astype(np.uint8))
    rows, columns = grey.shape
    whole = QImage(grey.data, columns, rows, columns, QImage.Format.Format_Grayscale8)
    small = whole.scaled(
        THUMBNAIL_PX,
        THUMBNAIL_PX,
        Qt.AspectRatioMode.KeepAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    small.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(buffer.data().data())


def snapshots_of(kept: KeptResult, before: int | None = None) -> Snapshots:
    """The iterations to scrub through, those up to ``before`` only."""
    snapshots = Snapshots()
    for k, sigma, images in kept.steps:
        if before is None or k <= before:
            snapshots.add(k, sigma, images)
    return snapshots


def frame_of_kept(kept: KeptResult) -> Any:
    """The last iteration's Frame, or None when there was none or it is not whole."""
    from engine.runs.frames import Frame

    said = kept.told.get("frame")
    if not isinstance(said, dict):
        return None
    tables: dict[str, dict[str, np.ndarray]] = {name: {} for name in DRAWN}
    for name, array in kept.arrays.items():
        table, _, key = name.partition(".")
        if table in tables and array.ndim == (1 if table == "psd" else 2):
            tables[table][key] = array
    frequency = kept.arrays.get("frequency")
    lengths = {len(curve) for curve in tables["psd"].values()}
    if frequency is None or set(tables["psd"]) != CURVES or lengths != {len(frequency)}:
        tables["psd"], frequency = {}, None
    units = said.get("units")
    numbers = numbers_in(said)
    return Frame(
        k=int(numbers.get("k", 0)),
        K=int(numbers.get("K", 0)),
        sigma=numbers.get("sigma", 0.0),
        nfe=int(numbers.get("nfe", 0)),
        units={**dict.fromkeys(tables["planes"], ""), **units} if isinstance(units, dict) else {},
        norms=numbers_in(said.get("norms")),
        metrics=numbers_in(said.get("metrics")),
        seconds=numbers_in(said.get("seconds")),
        frequency=frequency,
        planes=tables["planes"],
        psd=tables["psd"],
        psd_images=tables["psd_images"],
    )
