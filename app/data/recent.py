"""The files opened last. The list stays on this machine and can be cleared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.tasks import Tasks
from engine.files.atomic import write_bytes_atomic
from engine.files.folders import config_folder
from engine.spec.errors import DualscopeError

MOST = 12
FORMAT = "dualscope-recent-1"
LARGEST = 1 << 20  # bytes of a list worth reading
NOT_FOUND = "not found"


@dataclass(frozen=True)
class RecentEntry:
    """An input, and the options that were given for it."""

    text: str = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    there: bool = True


@dataclass(frozen=True)
class MenuEntry:
    """A line of the menu of recent files."""

    label: str = field(repr=False)
    tip: str = field(repr=False)
    text: str = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    enabled: bool


class RecentFiles(QObject):
    """Newest first; reading, writing and looking whether files are there happens in Tasks."""

    changed = Signal()

    def __init__(
        self, tasks: Tasks, path: Path | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.tasks = tasks
        self.path = path or config_folder() / "recent.json"
        self.entries: tuple[RecentEntry, ...] = ()
        self.problem = ""  # why the list is not kept, when it is not
        self.refresh()

    def menu_entries(self) -> list[MenuEntry]:
        """What was known at the last `refresh`; nothing is read here."""
        lines = []
        for entry in self.entries:
            path = Path(entry.text)
            name = path.name or entry.text
            if entry.there:
                lines.append(MenuEntry(name, entry.text, entry.text, entry.options, True))
            else:
                tip = f"{entry.text} was {NOT_FOUND}: it was moved, deleted or is not mounted."
                lines.append(
                    MenuEntry(f"{name} ({NOT_FOUND})", tip, entry.text, entry.options, False)
                )
        return lines

    def add(self, text: str, options: dict[str, Any]) -> None:
        """Put an input first; ``text`` is an absolute path."""
        self._start(partial(_add, self.path, RecentEntry(text, dict(options)), self.entries))

    def clear(self) -> None:
        self._start(partial(_write, self.path, ()))

    def refresh(self) -> None:
        """Read the list again and look which files are still there."""
        kept_in_memory = self.entries if self.problem else None
        self._start(partial(_read_here, self.path, kept_in_memory, self.problem))

    def _start(self, work: Callable[[], tuple[tuple[RecentEntry, ...], str]]) -> None:
        self.tasks.start("Keeping the list of recent files", work, self._on_done)

    def _on_done(self, answer: tuple[tuple[RecentEntry, ...], str]) -> None:
        self.entries, self.problem = answer
        self.changed.emit()


def read_recent(path: Path) -> list[RecentEntry]:
    """The list in a file; empty when there is none or it is not one."""
    try:
        if path.stat().st_size > LARGEST:
            return []
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        return []
    files = values.get("files")
    entries = []
    for one in files if isinstance(files, list) else []:
        text = one.get("text") if isinstance(one, dict) else None
        options = one.get("options") if isinstance(one, dict) else None
        if isinstance(text, str) and text and isinstance(options, dict) and "\0" not in text:
            entries.append(RecentEntry(text, options))
    return entries[:MOST]


def _read_here(
    path: Path, known: tuple[RecentEntry, ...] | None, problem: str
) -> tuple[tuple[RecentEntry, ...], str]:
    return _looked_for(read_recent(path) if known is None else known), problem


def _add(
    path: Path, new: RecentEntry, known: tuple[RecentEntry, ...]
) -> tuple[tuple[RecentEntry, ...], str]:
    # Another window may have written since; without a file the memory has to do.
    before = read_recent(path) or known
    rest = [entry for entry in before if entry.text != new.text]
    return _write(path, (new, *rest)[:MOST])


def _write(path: Path, entries: tuple[RecentEntry, ...]) -> tuple[tuple[RecentEntry, ...], str]:
    files = [{"text": entry.text, "options": entry.options} for entry in entries]
    content = json.dumps({"format": FORMAT, "files": files}, indent=1).encode()
    problem = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomic(path, content)
    except OSError as error:
        problem = f"Recent files are not kept: cannot make {path.parent}: {error.strerror}."
    except DualscopeError as error:
        problem = f"Recent files are not kept: {error}"
    return _looked_for(entries), problem


def _looked_for(
    entries: list[RecentEntry] | tuple[RecentEntry, ...],
) -> tuple[RecentEntry, ...]:
    return tuple(
        RecentEntry(entry.text, entry.options, _exists(Path(entry.text))) for entry in entries
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no permission to look: opening it will say so
        return True
