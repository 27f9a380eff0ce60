"""Open data as plain values: all that a window needs to know, without loading the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.data.dataset import Check, Dataset, Fact, Placement
    from engine.data.kspace.trajectory import Trajectory
    from engine.data.readers.dicom.series import Series

KIND_WORDS = {"image": "image", "sinogram": "sinogram", "kspace": "k-space"}


@dataclass(frozen=True)
class SeriesItem:
    """One line of the series list.

    ``label`` is safe anywhere; ``screen_text`` and ``refusal`` are for the screen only.
    """

    number: int  # from 1
    key: str  # what `choose_series` takes
    label: str
    count: int
    modality: str
    part: str = ""  # which stack of the series this is, such as 'echo 1 of 2'
    screen_text: str = field(default="", repr=False)
    refusal: str | None = field(default=None, repr=False)
    chosen: bool = False


@dataclass(frozen=True, eq=False)
class MeasuredViews:
    """A sinogram, as the CT panel shows it."""

    views: int
    angular_range: float  # degrees
    start_angle: float
    geometry: str
    angles_deg: tuple[float, ...] = field(repr=False)
    sinogram: NDArray[np.float32] | None = field(repr=False)  # [views, fewer detectors]
    photons: str = "not known"  # per ray in air, as the noise of the rays says


@dataclass(frozen=True, eq=False)
class MeasuredLines:
    """k-space, as the MRI panel shows it."""

    sampled: NDArray[np.bool_] = field(repr=False)  # (lines,)
    coils: int = 1
    trajectory: Trajectory | None = field(default=None, repr=False)  # of radial or spiral scans
    noise: str = "not known"  # SD of the samples in units of the MR scale, and its origin

    @property
    def lines(self) -> int:
        return int(self.sampled.size)


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """One opened input.

    ``name`` never holds what a person called the file, which is often a patient's name;
    ``screen_name``, ``patient`` and ``series`` are for the screen only. ``text`` and ``options``
    are the ``input`` and ``options`` of a Job.
    """

    text: str = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    name: str
    screen_name: str = field(repr=False)
    kind: str  # 'image', 'sinogram' or 'kspace'
    modality: str  # 'CT' or 'MR'
    count: int
    image_size: tuple[int, int]  # (rows, columns)
    pixel_mm: tuple[float, float] | None
    placements: tuple[Placement, ...] | None = field(default=None, repr=False)
    facts: tuple[Fact, ...] = field(default=(), repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)
    checks: tuple[Check, ...] = field(default=(), repr=False)  # when it was opened
    patient: tuple[str, ...] = field(default=(), repr=False)
    window: tuple[float, float] | None = None  # centre and width, when the file says them
    reading_step: int = 1  # from a slice to the next InstanceNumber; slices lie by their place
    series: tuple[SeriesItem, ...] = field(default=(), repr=False)
    views: MeasuredViews | None = None
    lines: MeasuredLines | None = None
    dataset: Dataset = field(repr=False)
    found: Sequence[Series] | None = field(default=None, repr=False)  # of the whole folder

    @property
    def middle(self) -> int:
        """The slice to begin with."""
        return self.count // 2

    @property
    def size_words(self) -> str:
        """'512 × 512, 0.7 mm': columns, rows and the distance of their pixels."""
        rows, columns = self.image_size
        if self.pixel_mm is None:
            return f"{columns} × {rows}, no size in mm"
        row, column = (f"{size:.3g}" for size in self.pixel_mm)
        return f"{columns} × {rows}, {column if row == column else f'{column} × {row}'} mm"

    @property
    def blocked(self) -> str:
        """Why these data cannot be run and what to do; empty when they can."""
        blocking = (check for check in self.dataset.checks if check.verdict == "blocking")
        return next((f"{check.sentence} {check.fix}".strip() for check in blocking), "")

    @property
    def measured(self) -> bool:
        """Whether these are raw data rather than images."""
        return self.kind != "image"


@dataclass(frozen=True)
class Choice:
    """One answer to a question, and the options that it stands for."""

    words: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A file that does not say enough of itself; ``missing`` names the options that would.

    With ``choices`` one of them is the answer; without, the geometry is asked for.
    """

    text: str = field(repr=False)
    options: dict[str, Any]
    screen_name: str = field(repr=False)
    missing: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
