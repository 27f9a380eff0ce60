"""What a stack in the main window asks for and is told, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.runs.stack import StackImages


@dataclass
class Focus:
    """The slice that is looked at: written by the screen, read before every slice."""

    slice: int = 0


@dataclass(frozen=True)
class StackRequest:
    """``jobs`` are (run id, Job as a dict), all of the same slices; ``fault`` as elsewhere.

    ``root`` holds one folder per stack: the same request finds its slices there again.
    """

    jobs: tuple[tuple[str, dict[str, Any]], ...]
    root: Path
    focus: Focus
    name: str = "stack"  # of the folders; no person's
    window: tuple[float, float] | None = None  # of the written series
    fault: str = ""


@dataclass(frozen=True)
class StackStarted:
    run_id: str
    label: str
    job: dict[str, Any]  # with its settings resolved
    modality: str
    unit: str
    slices: tuple[int, ...]
    pixel_mm: tuple[float, float] | None
    stack: StackImages
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class SliceDone:
    """A slice is in the stack's images; ``seconds`` is what it took, None if known before."""

    run_id: str
    number: int
    metrics: dict[str, float]
    seconds: float
    fresh: bool


@dataclass(frozen=True)
class StackEnded:
    """``status`` as of a run; ``series`` is the finished result as a DICOM series."""

    run_id: str
    status: str
    sentence: str = ""
    series: Path | None = None
