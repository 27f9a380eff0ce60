"""What is written, and by which writer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
from torch import Tensor

from engine.data.dataset import Dataset, Placement
from engine.files.atomic import check_name, check_writable
from engine.files.path_safety import check_apart
from engine.files.record import RunRecord
from engine.physics.fourier import to_complex
from engine.physics.problem import Problem
from engine.physics.units import MU_WATER_PER_MM
from engine.solvers.iteration import Iteration
from engine.spec.errors import DualscopeError, RequestError
from engine.spec.marks import CORNERS
from engine.spec.numbers import beyond_bodies


@dataclass(frozen=True)
class Result:
    """A reconstruction and all that a file about it may say.

    ``image`` is ``[N, C, H, W]`` in the prior's units; ``dataset`` is what it was made from,
    when there is one, with the placements and headers of its slices; ``window`` is the one the
    person sees, (centre, width); ``last`` is the run's last iteration, for the HDF5 record;
    ``output_unit`` is 'hu' or 'mu' (1/mm), for the formats of ``IN_ANY_UNIT``;
    ``run_number`` is what the window calls the run.
    """

    problem: Problem
    image: Tensor
    record: RunRecord = field(default_factory=lambda: RunRecord(job={}))
    dataset: Dataset | None = None
    window: tuple[float, float] | None = None
    deidentify: bool = False
    last: Iteration | None = None
    output_unit: str = "hu"
    run_number: int | None = None
    mark_corner: str = CORNERS[0]  # of pictures

    def values(self) -> np.ndarray:
        """float32 ``[N, H, W]``: HU for CT, magnitude in the input's scale for MR."""
        return physical_array(self.problem, self.image)

    @property
    def placements(self) -> list[Placement] | None:
        """Of its slices, when the input said where they are."""
        known, numbers = self.dataset and self.dataset.placements, self.problem.slices
        if not known or max(numbers) >= len(known):
            return None
        return [known[number] for number in numbers]

    @property
    def slice_mm(self) -> float | None:
        """Distance of the written slices, when only that is known of where they lie."""
        numbers = self.problem.slices
        if self.dataset is None or self.dataset.slice_mm is None:
            return None
        step = (max(numbers) - min(numbers)) // max(1, len(numbers) - 1)
        return self.dataset.slice_mm * max(1, step)

    @property
    def pixel_mm(self) -> tuple[float, float] | None:
        """(row, column) spacing; the input knows it better than the problem."""
        return (self.dataset.pixel_mm if self.dataset else None) or self.problem.pixel_mm

    @property
    def is_mu(self) -> bool:
        return self.output_unit == "mu" and self.problem.modality == "CT"

    def exported(self, values: np.ndarray) -> np.ndarray:
        """Values as files of plain numbers hold them: HU or, if asked for, attenuation in 1/mm."""
        if not self.is_mu:
            return values
        return (self._mu_water * (1 + values / 1000)).astype(np.float32)

    def to_hu(self) -> dict[str, float]:
        """Slope and intercept from what ``exported`` gives to HU; nothing when it is HU."""
        return {"slope": 1000 / self._mu_water, "intercept": -1000.0} if self.is_mu else {}

    @property
    def _mu_water(self) -> float:
        return float(self.problem.provenance.get("mu_water_per_mm", MU_WATER_PER_MM))

    def shown_window(self) -> tuple[float, float]:
        return self.window or default_window(self.problem, self.values())


def physical_array(problem: Problem, image: Tensor) -> np.ndarray:
    values = problem.physical(image)
    flat = values[:, 0] if problem.modality == "CT" else to_complex(values).abs()[:, 0]
    return flat.detach().cpu().float().numpy()


# suffix -> module and function, imported when first needed; a writer takes the path and the
# result, and returns notes for the person: what the format could not keep
WRITERS: dict[str, tuple[str, str]] = {
    ".png": ("engine.export.picture", "write_png"),
    ".16.png": ("engine.export.picture", "write_png16"),
    ".tif": ("engine.export.picture", "write_tiff"),
    ".tiff": ("engine.export.picture", "write_tiff"),
    ".npy": ("engine.export.nifti", "write_npy"),
    ".nii": ("engine.export.nifti", "write_nifti"),
    ".nii.gz": ("engine.export.nifti", "write_nifti"),
    ".h5": ("engine.export.hdf5", "write_h5"),
    ".dcm": ("engine.export.dicom", "write_dicom"),
}
IN_ANY_UNIT = (".npy", ".tif", ".tiff", ".nii", ".nii.gz")  # the others stay in HU
OUTPUT_UNITS = ("hu", "mu")
# a name without suffix is a folder, for a DICOM series
OUTPUT_SUFFIXES = tuple(WRITERS)


def suffix_of(path: Path, suffixes: Sequence[str]) -> str | None:
    """The known suffix of a path, the longest one ('.nii.gz' before '.gz')."""
    fitting = [suffix for suffix in suffixes if path.name.lower().endswith(suffix)]
    return max(fitting, key=len) if fitting else None


def check_outputs(
    names: Sequence[str],
    overwrite: bool,
    suffixes: Sequence[str] = OUTPUT_SUFFIXES,
    folders: bool = False,
) -> list[Path]:
    """Refuse before the long work what could not be written after it."""
    paths = [Path(name) for name in names]
    for path in paths:
        check_name(path)
        is_folder = folders and names_folder(path)
        if suffix_of(path, suffixes) is None and not is_folder:
            known = ", ".join(suffixes) + (", or a folder for DICOM" if folders else "")
            raise RequestError(f"{path}: write one of {known}.")
        if not path.absolute().parent.is_dir():
            raise RequestError(f"{path}: the folder {path.parent} does not exist.")
        if not os.access(path.absolute().parent, os.W_OK):
            raise RequestError(f"{path}: the folder {path.parent} is not writable.")
        check_writable(path)
        if is_folder:
            check_replaceable(path, overwrite)
            continue
        if path.is_dir():
            raise RequestError(f"{path} is a folder.")
        if path.exists() and not overwrite:
            raise RequestError(f"{path} exists: add ⟦overwrite⟧ to replace it.")
    if len({path.absolute() for path in paths}) < len(paths):
        raise RequestError("The same output is named twice.")
    return paths


def names_folder(path: Path) -> bool:
    return path.suffix == "" or (path.is_dir() and suffix_of(path, OUTPUT_SUFFIXES) is None)


def write_outputs(paths: Sequence[Path], result: Result, overwrite: bool = False) -> list[str]:
    """Write all files; the notes say what a format could not keep."""
    check_finite(result.values())
    check_apart(paths, result.dataset.files if result.dataset else ())
    notes: list[str] = []
    for path in paths:
        suffix = suffix_of(path, OUTPUT_SUFFIXES)
        if suffix is None:
            notes += write_dicom_series(path, result, overwrite)
            continue
        if result.is_mu and suffix not in IN_ANY_UNIT:
            notes.append(f"{path.name} is in HU: attenuation goes to {', '.join(IN_ANY_UNIT)}.")
        module, function = WRITERS[suffix]
        notes += getattr(import_module(module), function)(path, result) or []
    return list(dict.fromkeys(notes))


def check_replaceable(folder: Path, overwrite: bool) -> None:
    from engine.export import dicom

    dicom.check_replaceable(folder, overwrite)


def write_dicom_series(folder: Path, result: Result, overwrite: bool) -> list[str]:
    from engine.export import dicom

    return dicom.write_dicom_series(folder, result, overwrite=overwrite)


def check_finite(values: np.ndarray) -> None:
    """Every writer asks before it writes: a file with NaN in it would be believed."""
    if not np.isfinite(values).all():
        raise DualscopeError("The image holds NaN or infinity: nothing was written.")


DEFAULT_CT_WINDOW = (0.0, 1600.0)  # the paper's limited-angle figures, [-800, 800] HU


def parse_window(text: str | None) -> tuple[float, float] | None:
    """'40/400' as (centre, width)."""
    if text is None:
        return None
    try:
        centre, width = (float(part) for part in text.split("/"))
        if not width > 0:
            raise ValueError
    except ValueError:
        raise RequestError(f"⟦window⟧ '{text}': give centre/width, such as 40/400.") from None
    return centre, width


def window_to_bytes(values: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Linear VOI of DICOM: centre and width to 0..255."""
    centre, width = window
    y = (values - (centre - 0.5)) / max(width - 1, 1e-6) + 0.5
    return np.round(255 * np.clip(y, 0, 1)).astype(np.uint8)


def default_window(problem: Problem, values: np.ndarray) -> tuple[float, float]:
    """CT: a fixed one, unless its values are no body's. Otherwise the range without its tails."""
    if problem.modality == "CT" and not beyond_bodies(values):
        return DEFAULT_CT_WINDOW
    low, high = np.quantile(values, [0.001, 0.999])
    return linear_window(float(low), float(high))


def linear_window(low: float, high: float) -> tuple[float, float]:
    """The centre and width that map ``low`` to black and ``high`` to white."""
    width = max(high - low, 1e-12) + 1
    return low + (width - 1) / 2 + 0.5, width
