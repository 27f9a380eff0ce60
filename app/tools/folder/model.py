"""What the page of a folder asks for and is told, as plain values; the engine is not loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from app.background import Table
from engine.files.presets import Preset

# Words and a sign for each state of an input, so that neither colour nor sign stands alone.
SIGNS: Final = {
    "waiting": "◌",
    "running": "▶",
    "done": "✔",
    "failed": "✖",
    "stopped": "■",
    "left out": "–",
}
STATUS_COLUMN: Final = 1
OWN_LABELS: Final = {"unit": "Arrays in"}  # of settings that have another field elsewhere


@dataclass(frozen=True)
class FolderAsk:
    """``folder`` is that of the results; ``job`` lacks input, scan and settings.

    Without a ``preset`` there is nothing to compute with yet.
    """

    inputs: str
    folder: str
    preset: Preset | None = None
    job: dict[str, Any] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    watch: bool = False
    retry_failed: bool = False

    @property
    def fault(self) -> str:
        """Why this cannot start; empty when it can."""
        if not self.inputs:
            return "Choose a folder of inputs."
        if not self.folder:
            return "Choose a folder for the results."
        if not self.formats:
            return "Tick at least one format."
        return "" if self.preset is not None else "The methods are still loading."


@dataclass(frozen=True)
class FolderTable(Table):
    """``folders`` are where the results of each row lie; empty where there are none."""

    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Now:
    """What the main window would run with: method, settings and scan, and the rest of a job."""

    preset: Preset
    job: dict[str, Any]
