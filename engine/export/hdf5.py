"""The complete scientific record of a run as one HDF5 file; ``readers/run_h5.py`` reopens it.

Layout: ``image`` (HU, or magnitude in the input's scale) and ``reference`` as people look at
them; ``solver/`` the tensors of the last iteration in the prior's units, whose map to physical
ones is in the root attributes; ``measurement``; ``history/`` one array per quantity; ``psd/``
the last iteration's radial power curves; ``record`` the run record as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from torch import Tensor

from engine import __version__
from engine.data.readers.hdf5.run_file import FORMAT, FORMAT_VERSION
from engine.export.outputs import Result, check_finite, physical_array
from engine.files.atomic import write_atomic
from engine.files.record import FORMAT as RECORD_FORMAT
from engine.files.record import FORMAT_VERSION as RECORD_VERSION
from engine.files.record import plain, shared_record
from engine.physics.fourier import to_complex
from engine.physics.masks import SamplingMask
from engine.physics.problem import Problem
from engine.solvers.iteration import Iteration

COMPRESS_FROM = 1 << 16
NORMALISED = "prior's units: physical = scale * value + offset (root attributes)"


def write_h5(path: Path, result: Result) -> None:
    check_finite(result.values())

    def write(stream: BinaryIO) -> None:
        guarded = FirstError(stream)
        try:
            with h5py.File(guarded, "w") as file:
                fill(file, result)
        except Exception:
            if guarded.error is None:
                raise
        if guarded.error is not None:
            raise guarded.error

    write_atomic(path, write)


class FirstError:
    """A file that keeps its first failure to itself.

    When a disk is full, HDF5 goes on trying to close its objects and complains on the terminal
    about each; the one error that matters is raised afterwards.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                return self.file.write(data)
            except OSError as error:
                self.error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        if self.error is None:
            try:
                return self.file.truncate(size)
            except OSError as error:
                self.error = error
        return size or 0

    def flush(self) -> None:
        if self.error is None:
            try:
                self.file.flush()
            except OSError as error:
                self.error = error


def fill(file: h5py.File, result: Result) -> None:
    problem = result.problem
    unit = "HU" if problem.modality == "CT" else "input's MR scale"
    file.attrs.update(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "software": f"Dualscope {__version__}",
            "notice": "Not for diagnostic use",
            "modality": problem.modality,
            "unit": unit,
            "slices": np.array(problem.slices, np.int64),
            "intensity_kind": problem.intensity.kind,
            "intensity_scale": problem.intensity.scale,
            "intensity_offset": problem.intensity.offset,
        }
    )
    pixel_mm = result.pixel_mm
    if pixel_mm is not None:
        file.attrs["pixel_mm"] = pixel_mm
    apart = result.slice_mm
    if apart is not None:
        file.attrs["slice_mm"] = apart
    for name, image in (("image", result.image), ("reference", problem.reference)):
        if image is not None:
            _images(file, name, problem, image, unit)
    _put(file, "measurement", problem.measurement, NORMALISED)
    if problem.weights is not None:
        _put(file, "weights", problem.weights, "1")
    _put(file, "noise_sigma", np.atleast_1d(_numpy(problem.noise_sigma)), "as measurement")
    _operator(file, plain(problem.operator.describe()))
    _placements(file, result)
    _history(file.create_group("history"), result.record.history)
    if result.last is not None:
        _last(file, result.last)
    body = {"format": RECORD_FORMAT, "format_version": RECORD_VERSION}
    kept = plain(vars(result.record))
    if result.deidentify:
        kept = shared_record(kept, deidentify=True)
    file["record"] = json.dumps(body | kept, allow_nan=False)


def _images(file: h5py.File, name: str, problem: Problem, image: Tensor, unit: str) -> None:
    _put(file, name, physical_array(problem, image), unit)
    file[name].attrs["axes"] = "slice, row, column"
    if problem.modality == "MR":
        complex_image = to_complex(problem.physical(image))[:, 0]
        _put(file, f"{name}_complex", complex_image, unit)


def _last(file: h5py.File, last: Iteration) -> None:
    """x, z and whatever else the solver keeps between its steps (u: the dual)."""
    tensors = {"x": last.x, "z": last.z} | last.state
    for name, tensor in tensors.items():
        _put(file, f"solver/{name}", tensor, NORMALISED)
    file["solver"].attrs.update({"k": last.k, "K": last.K, "sigma": last.sigma, "nfe": last.nfe})
    for name, curve in last.psd.items():
        _put(file, f"psd/{name}", curve, "|DFT|^2 in the prior's units, mean of a ring")
        file[f"psd/{name}"].attrs["axes"] = "slice, channel, ring"
        file[f"psd/{name}"].attrs["ring"] = "cycles over the shorter side"


def _operator(file: h5py.File, described: dict[str, Any]) -> None:
    group = file.create_group("operator")
    group.attrs["kind"] = str(described.get("kind", ""))
    if isinstance(described.get("mask"), dict):
        mask = SamplingMask.from_dict(described["mask"])
        _put(group, "mask", mask.sampled.astype(np.uint8), "1: sampled")
    for name, value in (described.get("geometry") or {}).items():
        if isinstance(value, list):
            group.create_dataset(name, data=np.array(value, np.float64))
        elif isinstance(value, (int, float, str)):
            group.attrs[name] = value


def _placements(file: h5py.File, result: Result) -> None:
    placements = result.placements
    if placements is None:
        return
    group = file.create_group("placements")
    group.attrs["coordinates"] = "mm towards left, posterior, head (DICOM)"
    for name in ("position", "along_row", "along_column", "spacing_mm"):
        group[name] = np.array([getattr(one, name) for one in placements], np.float64)
    thickness = [np.nan if one.thickness_mm is None else one.thickness_mm for one in placements]
    group["thickness_mm"] = np.array(thickness, np.float64)


def _history(group: h5py.Group, history: list[dict[str, Any]]) -> None:
    """Columns of the record's history; what an iteration did not measure is NaN."""
    columns: dict[str, list[Any]] = {}
    for number, entry in enumerate(history):
        seconds = {f"seconds_{name}": s for name, s in (entry.get("seconds") or {}).items()}
        for name, value in ({**entry, "seconds": None} | seconds).items():
            if isinstance(value, (int, float, list)):
                columns.setdefault(name, [None] * len(history))[number] = value
    for name, values in columns.items():
        width = max(len(v) if isinstance(v, list) else 1 for v in values)
        table = np.full((len(values), width), np.nan)
        for number, value in enumerate(values):
            if value is not None:
                table[number] = value
        group[name] = table[:, 0] if width == 1 else table


def _put(group: h5py.Group, name: str, values: Tensor | np.ndarray, unit: str) -> None:
    array = _numpy(values)
    large = array.ndim > 1 and array.nbytes >= COMPRESS_FROM
    packed = {"chunks": (1, *array.shape[1:]), "compression": "gzip", "compression_opts": 1}
    dataset = group.create_dataset(name, data=array, **(packed if large else {}))
    dataset.attrs["unit"] = unit


def _numpy(values: Tensor | np.ndarray | float) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
