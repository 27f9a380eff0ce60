"""The runs of a session: what they were, how they went, what they left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal

from app.runs.colours import Dash, dash_for, style_of
from app.runs.events import RunFailed, RunFinished, RunStarted
from app.runs.snapshots import Snapshots
from app.runs.stack import StackImages
from app.theme import run_style


class RunColumns:
    """Named float columns of equal length; a number that is missing is NaN."""

    def __init__(self) -> None:
        self._columns: dict[str, np.ndarray] = {}
        self._length = 0
        self._room = 64

    def __len__(self) -> int:
        return self._length

    def append(self, values: dict[str, float]) -> None:
        if self._length == self._room:
            self._room *= 2
            for name, old in self._columns.items():
                self._columns[name] = self._blank()
                self._columns[name][: self._length] = old[: self._length]
        for name, value in values.items():
            if name not in self._columns:
                self._columns[name] = self._blank()
            self._columns[name][self._length] = value
        self._length += 1

    def _blank(self) -> np.ndarray:
        return np.full(self._room, np.nan)

    def names(self) -> list[str]:
        return list(self._columns)

    def column(self, name: str) -> np.ndarray:
        """The points so far: a view that later points do not change."""
        if name not in self._columns:
            return np.full(self._length, np.nan)
        return self._columns[name][: self._length]

    def last(self, name: str) -> float | None:
        if not self._length or name not in self._columns:
            return None
        value = float(self._columns[name][self._length - 1])
        return None if np.isnan(value) else value

    def at(self, key: str, value: float, name: str) -> float | None:
        """``name`` of the point whose ``key`` is ``value``."""
        found = self.column(name)[self.column(key) == value]
        return float(found[-1]) if len(found) and not np.isnan(found[-1]) else None

    def total(self, name: str) -> float | None:
        """The sum so far, None when there is no such number."""
        if not self._length or name not in self._columns:
            return None
        return float(np.nansum(self.column(name)))


# Of all runs together; the oldest give up their iterations (not their result) first.
SNAPSHOT_BYTES = 256 << 20
RUNNING = ("waiting", "running")
# Jobs that agree in these looked at the same measurement; in words, where they do not.
SAME_SCAN = {
    "input": "data",
    "options": "data",
    "slices": "slices",
    "acquisition": "acquisition",
    "seed": "seed",
}


@dataclass
class RunEntry:
    """One run as the table, the panes and the plots see it."""

    run_id: str
    number: int
    solver: str
    job: dict[str, Any]
    colour: str
    dash: Dash
    label: str
    status: str = "waiting"
    message: str = ""
    note: str = ""
    visible: bool = True
    modality: str = ""
    unit: str = ""
    slices: tuple[int, ...] = ()
    pixel_mm: tuple[float, float] | None = None
    reference: np.ndarray | None = None
    images: np.ndarray | None = None  # [B, H, W], the result
    last_frame: Any = None  # engine.runs.frames.Frame
    history: RunColumns = field(default_factory=RunColumns)
    snapshots: Snapshots = field(default_factory=Snapshots)
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    record_path: Path | None = None
    scan: str = ""  # views and arc, or the true acceleration, once the problem is built
    prior: str = ""  # its name, and how many patients it learnt from
    input_sha256: str = ""  # of the data a reopened run was made of
    frame_slice: int | None = None  # which slice the last frame of a reopened run is of
    verdicts: dict[str, str] = field(default_factory=dict)
    compare_with: str = ""
    stack: StackImages | None = None  # of a run that goes slice by slice; it has no ``images``

    @property
    def name(self) -> str:
        return f"#{self.number} {self.label}"

    @property
    def running(self) -> bool:
        return self.status in RUNNING

    @property
    def nfe(self) -> int | None:
        value = self.stack.nfe if self.stack else self.history.last("nfe")
        return int(value) if value else None

    def metric(self, name: str) -> float | None:
        """The final figure, or while running that of the newest iteration."""
        return self.metrics.get(name, self.history.last(name))

    def has_image_of(self, number: int) -> bool:
        if self.stack is not None:
            return number in self.stack.metrics
        return self.images is not None and (not self.slices or number in self.slices)

    def metric_of(self, number: int, name: str) -> float | None:
        """Of one slice, where every slice has figures of its own."""
        if self.stack is not None:
            return self.stack.metrics.get(number, {}).get(name)
        return self.metric(name)


class RunStore(QObject):
    """Signals carry the run's id."""

    added = Signal(str)
    updated = Signal(str)  # anything but the history
    grown = Signal(list)  # ids of runs with new points
    removed = Signal(str)

    def __init__(self, parent: QObject | None = None, most_bytes: int = SNAPSHOT_BYTES) -> None:
        super().__init__(parent)
        self.most_bytes = most_bytes
        self.removed_records: set[Path] = set()  # of runs that an undo may bring back
        self._entries: dict[str, RunEntry] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[RunEntry]:
        return iter(list(self._entries.values()))

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._entries

    def get(self, run_id: str) -> RunEntry | None:
        return self._entries.get(run_id)

    @property
    def next_number(self) -> int:
        return self._count + 1

    def create(self, run_id: str, job: dict[str, Any], label: str) -> RunEntry:
        """A run that is about to be made."""
        self._count += 1
        solver, style = str(job.get("solver", "dc-pnpdp")), style_of(job)
        taken = [entry.dash for entry in self if entry.colour == style.colour]
        dash = dash_for(style, taken)
        entry = RunEntry(run_id, self._count, solver, job, style.colour, dash, label)
        self.add(entry)
        return entry

    def add(self, entry: RunEntry, index: int | None = None) -> None:
        """Put a run in, at its old place when it comes back from a deletion."""
        items = list(self._entries.items())
        items.insert(len(items) if index is None else index, (entry.run_id, entry))
        self._entries = dict(items)
        self._count = max(self._count, entry.number)
        self.added.emit(entry.run_id)

    def remove(self, run_id: str) -> tuple[int, RunEntry]:
        """Take a run out; its place and itself, to put it back with."""
        index = list(self._entries).index(run_id)
        entry = self._entries.pop(run_id)
        if entry.record_path is not None:
            self.removed_records.add(entry.record_path)
        self.removed.emit(run_id)
        return index, entry

    def change(self, run_id: str, **values: Any) -> None:
        entry = self._entries.get(run_id)
        if entry is None:
            return
        for name, value in values.items():
            if not hasattr(entry, name):
                raise AttributeError(name)
            setattr(entry, name, value)
        self.updated.emit(run_id)

    def start(self, event: RunStarted) -> None:
        style = style_of(event.job)
        if entry := self._entries.get(event.run_id):
            entry.colour = style.colour  # a preset may have decided
        self.change(
            event.run_id,
            status="running",
            label=f"{event.label} naive" if style == run_style("naive") else event.label,
            job=event.job,
            modality=event.modality,
            unit=event.unit,
            slices=event.slices,
            pixel_mm=event.pixel_mm,
            reference=event.reference,
            snapshots=event.snapshots,
            scan=event.scan,
            prior=event.prior,
        )

    def finish(self, event: RunFinished | RunFailed) -> None:
        self.change(
            event.run_id,
            status="failed" if isinstance(event, RunFailed) else event.status,
            message=event.sentence if isinstance(event, RunFailed) else "",
            images=event.images,
            metrics=event.metrics,
            seconds=event.seconds,
            record_path=event.record_path,
            verdicts=getattr(event, "verdicts", {}),
            compare_with=getattr(event, "compare_with", ""),
        )
        self._stay_within_memory()

    def grow(self, scalars: Iterable[tuple[str, dict[str, float]]]) -> None:
        changed: dict[str, None] = {}
        for run_id, values in scalars:
            if entry := self._entries.get(run_id):
                entry.history.append(values)
                changed[run_id] = None
        if changed:
            self.grown.emit(list(changed))

    def _stay_within_memory(self) -> None:
        used = sum(entry.snapshots.nbytes for entry in self)
        for entry in self:
            if used <= self.most_bytes:
                return
            if not entry.running:
                used -= entry.snapshots.nbytes
                entry.snapshots.keep_ends()
                used += entry.snapshots.nbytes


SAME_RUN = ("input", "options", "acquisition", "solver", "settings", "prior", "seed")


def alike(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two jobs differ at most in their slices, and in where they are computed."""
    return all(a.get(name) == b.get(name) for name in SAME_RUN)


def differing(a: dict[str, Any], b: dict[str, Any]) -> str:
    """In what two jobs are not of one measurement ('acquisition'); empty when they are."""
    return next((words for name, words in SAME_SCAN.items() if a.get(name) != b.get(name)), "")


def settings_diff(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Where two jobs differ: (dotted name, value in a, value in b); None where absent."""
    flat_a, flat_b = dict(_flat(a)), dict(_flat(b))
    names = [*flat_a, *(name for name in flat_b if name not in flat_a)]
    return [
        (name, flat_a.get(name), flat_b.get(name))
        for name in names
        if flat_a.get(name) != flat_b.get(name)
    ]


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
