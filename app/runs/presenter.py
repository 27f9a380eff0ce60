"""Between the worker and the views: drains the mailbox 30 times a second and tells the news."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.background import ENDING, IDLE, Mail, Mailbox, Presenter
from app.runs.events import PREVIEW, QueueEmpty, RunFailed, RunFinished, RunRequest, RunStarted
from app.runs.progress import Pace, Progress
from app.runs.snapshots import DEFAULT_BYTES
from app.runs.store import RunStore
from app.runs.worker import RunWorker
from engine.files.run_library import RunLibrary

DRAIN_MS = 33


class RunPresenter(Presenter):
    """Starts runs, presses their buttons, and tells the views what came of it.

    All signals come from the GUI thread. ``state`` is 'idle', 'preparing', 'running',
    'paused' or 'ending'. ``labels`` are the engine's names of its methods, as far as it is
    loaded; a run that has started brings its own.
    """

    frame = Signal(str, object)  # run id, engine.runs.frames.Frame
    preview = Signal(str, object)  # run id, engine.runs.preview.Preview
    scalars = Signal(list)  # (run id, values) of every new iteration
    progress = Signal(object)  # Progress
    started = Signal(object)  # RunStarted
    finished = Signal(object)  # RunFinished
    failed = Signal(object)  # RunFailed

    worker: RunWorker

    def __init__(
        self,
        store: RunStore,
        library: RunLibrary | None = None,
        parent: QObject | None = None,
        snapshot_bytes: int = DEFAULT_BYTES,
    ) -> None:
        worker = RunWorker(Mailbox(), snapshot_bytes, library)
        super().__init__(worker, DRAIN_MS, parent)
        self.store, self.run_library = store, library
        self.labels: dict[str, str] = {}
        self._paces: dict[str, Pace] = {}
        self._made = 0

    def start(self, jobs: Sequence[dict[str, Any]]) -> list[str]:
        """Run jobs side by side; their ids. All of them are kept in the ``library``."""
        requests = []
        for job in jobs:
            self._made += 1  # of one second they stay in their order
            stamp, own = time.strftime("%Y%m%d-%H%M%S"), uuid.uuid4().hex[:4]
            run_id = f"{stamp}-{self._made % 256:02x}{own}"
            path = None if self.run_library is None else self.run_library.record(run_id)
            requests.append(RunRequest(run_id, dict(job), path))
        return self._submit(requests)

    def resume_record(self, record_path: Path, job: dict[str, Any]) -> str:
        """Go on with an interrupted run; ``job`` is the record's, for its name and colour."""
        request = RunRequest(record_path.stem, dict(job), record_path, resume=True)
        return self._submit([request])[0]

    def warm_up(self) -> None:
        """Import the engine in the background, so that the first run starts at once."""
        self.worker.submit([])
        self._timer.start()

    def _submit(self, requests: list[RunRequest]) -> list[str]:
        if self._closing:
            return []
        for request in requests:
            solver = str(request.job.get("solver", "dc-pnpdp"))
            self.store.create(request.run_id, request.job, self.labels.get(solver, solver))
        self.worker.submit(requests)
        if self.state == IDLE:
            self._paces.clear()
            self._set_state("preparing")
        self._timer.start()
        return [request.run_id for request in requests]

    def show(self, wanted: Iterable[str], sample: int = 0) -> None:
        """What frames hold: names of engine.runs.frames.PLANES and SPECTRA, and the slice."""
        self.worker.show(wanted, sample)

    @Slot()
    def pause(self) -> None:
        if self.state in ("running", "preparing"):
            self.worker.control.pause()
            self._set_state("paused")

    @Slot()
    def resume(self) -> None:
        if self.state == "paused":
            self.worker.control.resume()
            self._set_state("running")

    @Slot()
    def toggle_pause(self) -> None:
        if self.state == "paused":
            self.resume()
        else:
            self.pause()

    @Slot()
    def step(self) -> None:
        """One more iteration, then wait."""
        if self.state in ("running", "paused"):
            self.worker.control.step()
            self._set_state("paused")

    @Slot()
    def finish(self) -> None:
        if self.busy:
            self.worker.control.finish()
            self._set_state(ENDING)

    @Slot()
    def cancel(self) -> None:
        if self.busy:
            self.worker.control.cancel()
            self._set_state(ENDING)

    def close(self, timeout_seconds: float = 10.0) -> bool:
        """End everything and wait for it; whether it ended in time."""
        self.request_close()
        ended = self.worker.close(timeout_seconds)
        self._drain()
        self._timer.stop()
        return ended

    def take(self, mail: Mail) -> None:
        for event in mail.events:
            if isinstance(event, RunStarted):
                self._take_start(event)
            else:
                self._hand_on(mail)  # what a run did comes before its end
                self._take_ending(event)
        self._hand_on(mail)

    def _take_start(self, event: RunStarted) -> None:
        self.store.start(event)
        if all(pace.ended for pace in self._paces.values()):
            self._paces.clear()  # of the group before
        self._paces[event.run_id] = Pace(event.label)
        if self.state == "preparing":
            self._set_state("running")
        self.started.emit(event)

    def _hand_on(self, mail: Mail) -> None:
        """The numbers and frames of the runs that have started, each once."""
        scalars = [row for row in mail.scalars if row[0] in self._paces]
        mail.scalars = [row for row in mail.scalars if row[0] not in self._paces]
        for run_id, values in scalars:
            self._paces[run_id].take(values)
        if scalars:
            self.store.grow(scalars)
            self.scalars.emit(scalars)
            self.progress.emit(Progress.of(list(self._paces.values())))
        for slot in [name for name in mail.frames if name.startswith(PREVIEW)]:
            self.preview.emit(slot.removeprefix(PREVIEW), mail.frames.pop(slot))
        for run_id in [name for name in mail.frames if name in self._paces]:
            frame = mail.frames.pop(run_id)
            if entry := self.store.get(run_id):
                entry.last_frame = frame
            self.frame.emit(run_id, frame)

    def _take_ending(self, event: object) -> None:
        if isinstance(event, (RunFinished, RunFailed)):
            if pace := self._paces.get(event.run_id):
                pace.ended = True
            self.store.finish(event)
            (self.failed if isinstance(event, RunFailed) else self.finished).emit(event)
            self._after_a_run()
        elif isinstance(event, QueueEmpty) and not self._runs_wait():
            self._set_state(IDLE)
            if not self._closing:
                self._timer.stop()

    def _after_a_run(self) -> None:
        """The next group of the queue begins with fresh buttons."""
        running = any(not pace.ended for pace in self._paces.values())
        if not running and self._runs_wait():
            self._set_state("preparing")

    def _runs_wait(self) -> bool:
        return any(entry.running for entry in self.store)
