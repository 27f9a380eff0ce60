"""Quick first images, which stand in a pane until the run's own image is better."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from PySide6.QtCore import QObject, Slot

from app.runs.presenter import RunPresenter
from app.runs.store import RunEntry, RunStore


class Previews(QObject):
    """``changed`` is told of a run whose pane is to be drawn again.

    A preview belongs to the screen alone: it is in no entry, file or figure.
    """

    def __init__(
        self,
        store: RunStore,
        runs: RunPresenter,
        scrubbed: Container[str],
        changed: Callable[[str], None],
    ) -> None:
        super().__init__(runs)
        self.store, self.scrubbed, self.changed = store, scrubbed, changed
        self._standing: dict[str, Any] = {}  # run id -> engine.runs.preview.Preview
        runs.preview.connect(self._on_preview)
        runs.state_changed.connect(self._on_state)

    def of(self, entry: RunEntry) -> Any:
        """What stands for the run now; None when its own image does."""
        preview, frame = self._standing.get(entry.run_id), entry.last_frame
        if preview is None:
            return None
        better = frame is not None and frame.sigma <= preview.until_sigma
        if better or not entry.running or entry.run_id in self.scrubbed:
            del self._standing[entry.run_id]
            return None
        return preview

    @Slot(str, object)
    def _on_preview(self, run_id: str, preview: Any) -> None:
        entry = self.store.get(run_id)
        if entry is not None and entry.running and entry.last_frame is None:
            self._standing[run_id] = preview
            self.changed(run_id)

    @Slot(str)
    def _on_state(self, state: str) -> None:
        """Whoever holds a run wants to see the run itself."""
        if state not in ("preparing", "running"):
            held, self._standing = self._standing, {}
            for run_id in held:
                self.changed(run_id)
