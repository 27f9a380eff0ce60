"""Deleting runs, so that it can be taken back."""

from __future__ import annotations

from PySide6.QtGui import QUndoCommand

from app.runs.store import RunEntry, RunStore


class DeleteRuns(QUndoCommand):
    """Keeps what it removed until the undo stack forgets it; files on disk stay."""

    def __init__(self, store: RunStore, run_ids: list[str]) -> None:
        names = [entry.name for entry in store if entry.run_id in run_ids]
        super().__init__(f"Delete {', '.join(names)}")
        self._store, self._ids = store, run_ids
        self._removed: list[tuple[int, RunEntry]] = []

    def redo(self) -> None:
        self._removed = [self._store.remove(run_id) for run_id in self._ids]

    def undo(self) -> None:
        for index, entry in reversed(self._removed):
            self._store.add(entry, index)
