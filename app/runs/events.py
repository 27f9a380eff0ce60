"""The few things a worker says about a run, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from app.runs.snapshots import Snapshots

PREVIEW = "preview "  # before a run's id: the slot of its quick first images


@dataclass(frozen=True)
class RunRequest:
    """One run to make: an engine Job as a dict, and where its record is kept.

    With ``resume`` the run of that record goes on from its checkpoint, whatever ``job`` says.
    """

    run_id: str
    job: dict[str, Any]
    record_path: Path | None = None
    resume: bool = False


@dataclass(frozen=True)
class RunStarted:
    """The files are read and the problem is built; iterations follow.

    ``job`` has its settings resolved (presets and defaults filled in); ``reference`` is
    ``[B, H, W]`` in ``unit``, or None when the input has none.
    """

    run_id: str
    label: str
    job: dict[str, Any]
    modality: str
    unit: str
    slices: tuple[int, ...]
    pixel_mm: tuple[float, float] | None
    reference: np.ndarray | None
    warnings: list[str]
    snapshots: Snapshots
    scan: str = ""  # '20 views / 180°', 'R 4.27': what was measured, not what was asked for
    prior: str = ""  # its name, and from how many people it learnt


@dataclass(frozen=True)
class RunFinished:
    """The run ended as ``status`` says: 'done', 'finished early' or 'cancelled'.

    ``verdicts`` are sentences about the result, each beginning with its short form up to the
    colon; ``compare_with`` is a method to look at, too, where they doubt the prior.
    """

    run_id: str
    status: str
    images: np.ndarray | None  # [B, H, W], what is kept
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    record_path: Path | None = None
    verdicts: dict[str, str] = field(default_factory=dict)
    compare_with: str = ""


@dataclass(frozen=True)
class RunFailed:
    """One sentence for the person, the details for a report.

    ``expected`` tells a message one can act on from a bug; ``images`` is the last good one.
    """

    run_id: str
    sentence: str
    details: str
    expected: bool
    images: np.ndarray | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    record_path: Path | None = None


@dataclass(frozen=True)
class QueueEmpty:
    """Nothing runs and nothing waits."""


@dataclass(frozen=True)
class DisplayRequest:
    """What the screen shows at the moment; the worker reads it before every frame."""

    wanted: frozenset[str] = frozenset({"image", "psd"})
    sample: int = 0
