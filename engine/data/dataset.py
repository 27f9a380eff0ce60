"""What every reader returns: one input, its geometry, and where each number came from.

A dataset is lazy: opening it reads headers only, and ``load`` reads the slices asked for.
Its description, facts and warnings never hold a patient's name or number.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from engine.data.input_options import InputOptions
from engine.errors import RequestError
from engine.priors.prior import IntensityMap
from engine.problem import Problem
from engine.settings import option_name

if TYPE_CHECKING:
    import pydicom

Vector = tuple[float, float, float]
Verdict = Literal["good", "corrected", "doubtful", "blocking"]
Stamp = tuple[int, int] | None  # size and time of a file; None when it cannot be seen


@dataclass(frozen=True)
class Fact:
    """One thing known of the input, and its origin: a tag, an option, an assumption."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class Check:
    """One line of what was looked at before a run, and what came of it.

    ``verdict``: 'good'; 'corrected' (the sentence says how); 'doubtful' (it can be run, and the
    sentence says what may be wrong); 'blocking' (it cannot, and ``fix`` says what to do).
    """

    name: str
    verdict: Verdict
    sentence: str
    fix: str = ""


@dataclass(frozen=True)
class Placement:
    """Where a slice lies in the patient, in DICOM's coordinates (mm; left, posterior, up)."""

    position: Vector  # centre of the first pixel
    along_row: Vector  # unit vector of rising column number
    along_column: Vector  # unit vector of rising row number
    spacing_mm: tuple[float, float]  # between rows, between columns
    thickness_mm: float | None = None

    @property
    def normal(self) -> Vector:
        x, y, z = np.cross(self.along_row, self.along_column).tolist()
        return x, y, z


@dataclass(frozen=True)
class Slices:
    """Loaded images ``[N, C, H, W]``: HU (CT, one channel) or complex as two channels (MR)."""

    images: Tensor
    modality: str
    pixel_mm: float
    numbers: tuple[int, ...] = (0,)  # which slices of the input these are


@dataclass
class Dataset(ABC):
    """An opened input.

    Attributes
    ----------
    files : what it was read from, in reading order; its hash identifies the input
    image_size : (rows, columns) of a reconstructed slice
    pixel_mm : (row, column) spacing of it
    checks : what was looked at before a run: the integrity of the input and its units
    placements : one per slice, when the input says where its slices are
    headers : gives the DICOM header of a slice (without pixels), when there is one
    """

    kind: ClassVar[str]  # 'image', 'sinogram' or 'kspace'

    modality: str  # 'CT' or 'MR'
    description: str
    count: int
    image_size: tuple[int, int]
    pixel_mm: tuple[float, float] | None
    files: tuple[Path, ...] = ()
    facts: list[Fact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    placements: tuple[Placement, ...] | None = None
    headers: Callable[[int], pydicom.Dataset] | None = None
    opened: tuple[Stamp, ...] = ()  # of the files, when they were opened
    _sha256: str | None = None

    def __len__(self) -> int:
        return self.count

    def add_fact(self, name: str, value: object, origin: str) -> None:
        self.facts.append(Fact(name, str(value), origin))

    def take(self, options: InputOptions) -> None:
        """What a person said that holds for any file of this kind."""
        for name in ("maps", "virtual_coils", "mr_scale", "trajectory", "trajectory_unit"):
            if getattr(options, name) is not None:
                raise RequestError(f"{option_name(name)} is for k-space: this is a {self.kind}.")

    def say(self, name: str, value: object, origin: str) -> None:
        """A fact that a later problem of the same data replaces."""
        self.facts = [fact for fact in self.facts if fact.name != name]
        self.add_fact(name, value, origin)

    def check(self, name: str, verdict: Verdict, sentence: str, fix: str = "") -> None:
        """A line of the list of checks; replaces an earlier one of the same name."""
        self.checks = [check for check in self.checks if check.name != name]
        self.checks.append(Check(name, verdict, sentence, fix))

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def sha256(self) -> str:
        """Of the files' contents, in order; computed when first asked for.

        It vouches for what was read: files that have changed since they were opened are refused.
        """
        if self._sha256 is None:
            digest = hashlib.sha256()
            for path in self.files:
                digest.update(sha256_of(path).encode())
            for path, stamp in zip(self.files, self.opened, strict=False):
                if stamp_of(path) != stamp:
                    raise RequestError(f"{path} has changed since it was opened: open it again.")
            self._sha256 = sha256_of(self.files[0]) if len(self.files) == 1 else digest.hexdigest()
        return self._sha256

    @abstractmethod
    def preview(self, number: int) -> np.ndarray:
        """A picture of slice ``number``: HU or magnitude ``[rows, columns]``."""

    @abstractmethod
    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        """Slices ``numbers`` as one problem in the units of ``intensity``.

        ``acquisition`` holds only what was asked for: values of CTAcquisition or
        MRIAcquisition. Measured data can be thinned by it, never added to.
        """


@dataclass
class ImageDataset(Dataset):
    """Images whose measurement is simulated: the image itself is then the reference.

    ``read(number)`` gives one slice, float32 HU (CT) or real or complex numbers (MR).
    """

    kind: ClassVar[str] = "image"
    read: Callable[[int], np.ndarray] = lambda number: np.zeros((0, 0))

    def preview(self, number: int) -> np.ndarray:
        array = self.read(number)
        return np.abs(array) if self.modality == "MR" else array

    def load(self, numbers: Sequence[int]) -> Slices:
        """Read slices; not a number among them is an error, for nothing could be simulated."""
        arrays = []
        for number in numbers:
            array = self.read(number)
            if not np.isfinite(array).all():
                raise RequestError(
                    f"{self.description}: slice {number} (counted from 0) holds NaN or infinity."
                )
            arrays.append(array)
        stack = np.stack(arrays)
        if self.modality == "MR":
            complex_stack = torch.from_numpy(stack.astype(np.complex64))
            images = torch.view_as_real(complex_stack).movedim(-1, 1).contiguous()
        else:
            images = torch.from_numpy(stack.astype(np.float32))[:, None]
        return Slices(images, self.modality, self._square_pixel(), tuple(numbers))

    def _square_pixel(self) -> float:
        if self.pixel_mm is None:
            return 1.0
        rows, columns = self.pixel_mm
        if self.modality == "CT" and abs(rows - columns) > 1e-3 * rows:
            raise RequestError(
                f"{self.description}: pixels of {rows:g} x {columns:g} mm are not square; "
                "resample the image before simulating a CT scan of it."
            )
        return columns

    def problem(
        self,
        numbers: Sequence[int],
        acquisition: dict[str, Any],
        intensity: IntensityMap,
        seed: int,
    ) -> Problem:
        from engine.acquisition import RestorationAcquisition, acquisition_for
        from engine.restoration import restoration_problem
        from engine.simulate import simulate

        settings, source = acquisition_for(self.modality, acquisition), self.load(numbers)
        if isinstance(settings, RestorationAcquisition):
            problem = restoration_problem(source, settings, intensity, seed)
        else:
            problem = simulate(source, settings, intensity, seed)
        problem.pixel_mm = self.pixel_mm or problem.pixel_mm
        return problem


def stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def sha256_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise RequestError(f"Cannot read {path}: {error.strerror}.") from error
