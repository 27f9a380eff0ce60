"""What the page of a volume asks for and is told, as plain values; the engine is not loaded."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.background import Table
from app.forms.labels import on_screen
from engine.files.folders import state_folder
from engine.spec.errors import RequestError
from engine.workflows.cluster.compute_targets import ClusterAddress, LocalWorkers

if TYPE_CHECKING:
    from engine.data.dataset import Dataset

HERE, PROCESSES, CLUSTER = "here", "processes", "cluster"
LONGEST_NAME: Final = 40
# Words and a sign for each state, so that neither colour nor sign stands alone.
WAITING, COMPUTING, STORED = "◌ waiting", "▶ computing", "✔ stored"
WORKER_WORDS: Final = {
    "starting": "◌ starting",
    "ready": "◌ idle",
    "computing": "▶ computing",
    "refused": "✖ refused",
    "lost": "✖ lost",
}


@dataclass(frozen=True)
class Place:
    """Who computes: this program, processes on this computer, or a cluster."""

    kind: str = HERE
    workers: int = 2
    address: str = ""
    tls: tuple[str, str, str] = ("", "", "")  # authority, certificate, key; '' as Dask has it

    def where(self) -> LocalWorkers | ClusterAddress | None:
        """As the engine takes it; what is wrong with it is a RequestError."""
        if self.kind == PROCESSES:
            return LocalWorkers(self.workers, dashboard=find_spec("bokeh") is not None)
        if self.kind == CLUSTER:
            return ClusterAddress(
                self.address, *(Path(file) if file else None for file in self.tls)
            )
        return None

    def fault(self) -> str:
        try:
            self.where()
        except RequestError as error:
            return on_screen(error)
        return ""

    @property
    def exposed(self) -> bool:
        """Whether data would leave this computer unencrypted."""
        where = self.where()
        return isinstance(where, ClusterAddress) and where.exposed


@dataclass(frozen=True)
class Now:
    """What the main window would run with; ``fault`` says why it would not."""

    job: dict[str, Any] = field(default_factory=dict)  # without its slices
    name: str = ""  # of the data; no person's
    words: str = ""
    count: int = 0
    couples: bool = False  # whether the method can couple slices
    fault: str = ""


@dataclass(frozen=True)
class VolumeAsk:
    """``folder`` is that of the slices; ``fault`` says what is still missing."""

    folder: str
    job: dict[str, Any] = field(default_factory=dict)
    place: Place = Place()
    fault: str = ""


@dataclass(frozen=True)
class ExportAsk:
    """``dataset`` is open and may be the volume's own; ``fault`` says what is still missing."""

    volume: Path
    folder: str  # that the result goes into
    name: str = ""
    window: tuple[float, float] | None = None
    deidentify: bool = True
    overwrite: bool = False
    dataset: Dataset | None = None
    fault: str = ""


@dataclass(frozen=True)
class VolumeTable(Table):
    """One row per slice; with it what else is new."""

    folder: str = ""
    stored: int = 0
    workers: Table = field(default_factory=Table)
    dashboard: str = ""


def usual_folder(name: str, job: dict[str, Any]) -> Path:
    """Where a request keeps its slices: the same request finds them again, another does not."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", f"{name} {job.get('solver', '')}").strip("-").lower()
    digest = hashlib.sha256(json.dumps(job, sort_keys=True, default=str).encode()).hexdigest()
    return state_folder() / "volumes" / f"{plain[:LONGEST_NAME].strip('-')}-{digest[:8]}"
