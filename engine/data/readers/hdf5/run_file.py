"""Reopens what ``writers/hdf5.py`` wrote: a run's complete record, or its image as an input."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from engine.data.dataset import ImageDataset, Placement
from engine.data.readers.hdf5.safe import array, item, open_h5, read, text
from engine.data.readers.volumes.volume import settle_pixel, stated_unit
from engine.data.sidecar import Described
from engine.files.record import RunRecord
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions

FORMAT, FORMAT_VERSION = "dualscope-run-h5", 1
MAX_ATTRIBUTE_BYTES, MAX_ARRAYS, MAX_RECORD_CHARACTERS = 1 << 16, 64, 64 << 20
GROUPS = ("solver", "history", "psd", "operator")
ARRAYS = ("image", "image_complex", "reference", "reference_complex", "measurement", "weights")


@dataclass(frozen=True)
class RunFile:
    """A run as it was saved. ``arrays`` by their path in the file: 'image', 'solver/u', ..."""

    record: RunRecord
    modality: str
    unit: str
    slices: tuple[int, ...]
    pixel_mm: tuple[float, float] | None
    intensity: IntensityMap
    arrays: dict[str, np.ndarray]
    placements: tuple[Placement, ...] | None


def is_run_h5(file: h5py.File) -> bool:
    return attribute(file, "format") == FORMAT


def read_run_h5(path: Path) -> RunFile:
    """Everything in the file, in memory."""
    with open_h5(path) as file:
        modality, count, _ = _head(path, file)
        slices = np.atleast_1d(np.asarray(attribute(file, "slices")))
        if slices.shape != (count,) or slices.dtype.kind not in "iu":
            raise _damaged(path, "slices")
        values = [attribute(file, f"intensity_{name}") for name in ("kind", "scale", "offset")]
        return RunFile(
            record=_record(path, text(file, "record")),
            modality=modality,
            unit=str(attribute(file, "unit")),
            slices=tuple(int(n) for n in slices),
            pixel_mm=_pixel(file),
            intensity=IntensityMap(str(values[0]), float(values[1]), float(values[2])),
            arrays=_arrays(path, file),
            placements=_placements(path, file, count),
        )


def open_run_h5(path: Path, options: InputOptions) -> ImageDataset:
    """The saved image as an input; ``--dataset reference`` takes the true image instead."""
    name = options.dataset or "image"
    if name not in ("image", "reference"):
        raise RequestError(f"{path}: ⟦dataset⟧ '{name}': give image or reference.")
    with open_h5(path) as file:
        modality, count, size = _head(path, file)
        has_complex = modality == "MR" and array(file, f"{name}_complex") is not None
        chosen = f"{name}_complex" if has_complex else name
        found = array(file, chosen)
        if found is None or found.shape != (count, *size):
            raise RequestError(f"{path} holds no {name} image.")
        pixel_mm, placements = _pixel(file), _placements(path, file, count)
        apart = attribute(file, "slice_mm")
    described = Described(InputOptions(kind=options.kind))
    unit = stated_unit(path, described, False, (modality, "the file"))

    def slice_of(number: int) -> np.ndarray:
        with open_h5(path) as file:
            found = array(file, chosen)
            if found is None:
                raise RequestError(f"{path} has changed since it was opened.")
            return read(found, (number,)).astype(np.complex64 if has_complex else np.float32)

    dataset = ImageDataset(
        modality=modality,
        description=path.name,
        count=count,
        image_size=size,
        pixel_mm=pixel_mm,
        files=(path,),
        facts=list(unit.facts),
        placements=placements,
        read=slice_of,
    )
    if isinstance(apart, float) and math.isfinite(apart) and apart > 0 and placements is None:
        dataset.settle_slices(apart, "the file")
    settle_pixel(dataset, Described(options), pixel_mm is not None, "the file")
    return dataset


def attribute(node: h5py.File | h5py.Group, name: str) -> Any:
    """A small attribute, or None."""
    try:
        if name not in node.attrs or node.attrs.get_id(name).get_storage_size() > (
            MAX_ATTRIBUTE_BYTES
        ):
            return None
        value = node.attrs[name]
    except (OSError, KeyError, TypeError, ValueError, RuntimeError):
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _head(path: Path, file: h5py.File) -> tuple[str, int, tuple[int, int]]:
    """Modality, number of slices and their size."""
    if not is_run_h5(file):
        raise RequestError(f"{path} is not a run that Dualscope saved.")
    if attribute(file, "format_version") != FORMAT_VERSION:
        raise RequestError(f"{path} was written by another version of Dualscope.")
    modality, image = attribute(file, "modality"), array(file, "image")
    if modality not in ("CT", "MR"):
        raise _damaged(path, "modality")
    if image is None or image.ndim != 3 or min(image.shape) < 1:
        raise _damaged(path, "image")
    count, rows, columns = image.shape
    return modality, count, (rows, columns)


def _pixel(file: h5py.File) -> tuple[float, float] | None:
    value = np.asarray(attribute(file, "pixel_mm"))
    if value.shape != (2,) or value.dtype.kind != "f" or not (value > 0).all():
        return None
    return float(value[0]), float(value[1])


def _arrays(path: Path, file: h5py.File) -> dict[str, np.ndarray]:
    names = [*ARRAYS, "noise_sigma"]
    for group in GROUPS:
        found = item(file, group)
        if isinstance(found, h5py.Group):
            names += [f"{group}/{name}" for name, _ in zip(found, range(MAX_ARRAYS), strict=False)]
    arrays = {}
    for name in names:
        found = array(file, name)
        if found is not None:
            arrays[name] = read(found)
    return arrays


def _placements(path: Path, file: h5py.File, count: int) -> tuple[Placement, ...] | None:
    if item(file, "placements") is None:
        return None
    columns = {}
    widths = {"position": 3, "along_row": 3, "along_column": 3, "spacing_mm": 2}
    for name, width in (widths | {"thickness_mm": 0}).items():
        found = array(file, f"placements/{name}")
        if found is None or found.shape != ((count, width) if width else (count,)):
            raise _damaged(path, f"placements/{name}")
        columns[name] = read(found).tolist()
    if not all(np.isfinite(columns[name]).all() for name in widths):
        raise _damaged(path, "placements")
    return tuple(
        Placement(
            tuple(columns["position"][n]),
            tuple(columns["along_row"][n]),
            tuple(columns["along_column"][n]),
            tuple(columns["spacing_mm"][n]),
            None if math.isnan(columns["thickness_mm"][n]) else columns["thickness_mm"][n],
        )
        for n in range(count)
    )


def _record(path: Path, content: str | None) -> RunRecord:
    try:
        body = json.loads(content) if content and len(content) < MAX_RECORD_CHARACTERS else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("job"), dict):
        raise _damaged(path, "record")
    blank = RunRecord(job={})
    known = {field.name for field in dataclasses.fields(RunRecord)} & set(body)
    for name in known - {"prior"}:
        if type(body[name]) is not type(getattr(blank, name)):
            raise _damaged(path, "record")
    return RunRecord(**{name: body[name] for name in known})


def _damaged(path: Path, name: str) -> RequestError:
    return RequestError(f"{path} is damaged: '{name}' is missing or cannot be used.")
