"""What every reader returns: one input, its geometry, and where each number came from.

A dataset is lazy: opening it reads headers only, and ``load`` reads the slices asked for.
Its description, facts and warnings never hold a patient's name or number.
"""

from __future__ import annotations

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from engine.files.budget import check_whole
from engine.files.path_safety import reading
from engine.physics.problem import Problem
from engine.physics.simulate import Slices
from engine.physics.units import IntensityMap
from engine.spec.errors import RequestError, Sentence, marked, quoting, shown
from engine.spec.input_options import InputOptions

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

    def __post_init__(self) -> None:
        for name in ("name", "value", "origin"):  # tags and names of files are quoted in them
            object.__setattr__(self, name, shown(getattr(self, name)))


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

    def __post_init__(self) -> None:
        for name in ("name", "sentence", "fix"):
            object.__setattr__(self, name, quoting(getattr(self, name)))


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
    slice_mm : distance of neighbouring slices, when only that is known
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
    slice_mm: float | None = None
    headers: Callable[[int], pydicom.Dataset] | None = None
    opened: tuple[Stamp, ...] = ()  # of the files, when they were opened
    _sha256: str | None = None

    def __len__(self) -> int:
        return self.count

    def add_fact(self, name: str, value: object, origin: str) -> None:
        self.facts.append(Fact(name, Sentence(str(value)), Sentence(origin)))

    def take(self, options: InputOptions) -> None:
        """What a person said that holds for any file of this kind."""
        paths = ("trajectory", "trajectory_unit", "correct_readouts")
        for name in ("maps", "virtual_coils", "mr_scale", *paths):
            if getattr(options, name) is not None:
                raise RequestError(f"⟦{name}⟧ is for k-space: this is a {self.kind}.")

    def say(self, name: str, value: object, origin: str) -> None:
        """A fact that a later problem of the same data replaces."""
        self.facts = [fact for fact in self.facts if fact.name != name]
        self.add_fact(name, value, origin)

    def check(self, name: str, verdict: Verdict, sentence: str, fix: str = "") -> None:
        """A line of the list of checks; replaces an earlier one of the same name."""
        kept = [check for check in self.checks if check.name != name]
        self.checks[:] = [*kept, Check(name, verdict, sentence, fix)]  # in place: shrunk shares it

    @property
    def notices(self) -> list[str]:
        """Every sentence to read before a run: the warnings, and the checks that are not good."""
        said = [check.sentence for check in self.checks if check.verdict != "good"]
        return list(dict.fromkeys([*map(quoting, self.warnings), *said]))

    def refuse_blocked(self) -> None:
        """Stop a run of data that a check calls unfit for one."""
        for check in self.checks:
            if check.verdict == "blocking":
                raise RequestError(
                    f"{self.description}: {marked(check.sentence)} {marked(check.fix)}".rstrip()
                    + " (⟦ignore_checks⟧ runs it all the same.)"
                )

    def warn(self, sentence: str) -> None:
        if (said := quoting(sentence)) not in self.warnings:
            self.warnings.append(said)

    def settle_slices(self, slice_mm: float | None, origin: str) -> None:
        """The distance of neighbouring slices, unless the input itself says where they lie."""
        if slice_mm is None:
            return
        if self.placements is not None:
            self.warn("⟦slice_spacing_mm⟧ is ignored: the file says where its slices lie.")
            return
        self.slice_mm = slice_mm
        self.add_fact("slice spacing", f"{slice_mm:g} mm", origin)

    def look(self) -> None:  # noqa: B027 (nothing to look for, unless a kind of data knows)
        """Fill the list of checks from one slice of the input."""

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

    ``read(number)`` gives one slice, float32 HU (CT) or real or complex numbers (MR), and
    ``read_fine(number, factor)`` the same on a grid that many times finer, if there is more to
    see on it.
    """

    kind: ClassVar[str] = "image"
    read: Callable[[int], np.ndarray] = lambda number: np.zeros((0, 0))
    read_fine: Callable[[int, int], np.ndarray | None] = lambda number, factor: None

    def preview(self, number: int) -> np.ndarray:
        array = self.read(number)
        return np.abs(array) if self.modality == "MR" else array

    def look(self) -> None:
        unit = next((fact.value for fact in self.facts if fact.name == "unit"), None)
        from engine.data.images.air import check_image_unit

        if self.modality != "CT" or unit is None or self.headers is not None:
            return
        with contextlib.suppress(RequestError):  # whoever needs the slice will say so
            image = self.read(self.count // 2)
            if np.isfinite(image).all():
                found = check_image_unit(image, unit)
                self.check(found.name, found.verdict, found.sentence, found.fix)

    def load(self, numbers: Sequence[int], fine_grid: int = 1) -> Slices:
        """Read slices; not a number among them is an error, for nothing could be simulated.

        With ``fine_grid`` also on a grid that many times finer, where there is one.
        """
        arrays = []
        for number in numbers:
            array = self.read(number)
            if not np.isfinite(array).all():
                raise RequestError(
                    f"{self.description}: slice {number} (counted from 0) holds NaN or infinity."
                )
            arrays.append(array)
        images, fine = self._stacked(arrays), None
        if fine_grid > 1:
            finer = [self.read_fine(number, fine_grid) for number in numbers]
            known = [array for array in finer if array is not None]
            fine = self._stacked(known) if len(known) == len(numbers) else None
        return Slices(images, self.modality, self._square_pixel(), tuple(numbers), fine)

    def _stacked(self, arrays: Sequence[np.ndarray]) -> Tensor:
        stack = np.stack(arrays)
        if self.modality == "MR":
            complex_stack = torch.from_numpy(stack.astype(np.complex64))
            return torch.view_as_real(complex_stack).movedim(-1, 1).contiguous()
        return torch.from_numpy(stack.astype(np.float32))[:, None]

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
        from engine.physics.restoration import restoration_problem
        from engine.physics.simulate import simulate
        from engine.spec.acquisition import RestorationAcquisition, acquisition_for

        settings = acquisition_for(self.modality, acquisition)
        if isinstance(settings, RestorationAcquisition):
            problem = restoration_problem(self.load(numbers), settings, intensity, seed)
        else:
            problem = simulate(self.load(numbers, settings.fine_grid), settings, intensity, seed)
        problem.pixel_mm = self.pixel_mm or problem.pixel_mm
        return problem


def vector_of(values: np.ndarray) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z


def stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def sha256_of(path: Path) -> str:
    with reading(path):
        check_whole(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
