"""The one thread that computes runs.

The engine, and torch with it, is imported in this thread only, so that the window opens without
waiting for it.
"""

from __future__ import annotations

import gc
import queue
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.background import Mailbox, Worker
from app.runs.events import DisplayRequest, QueueEmpty, RunFailed, RunRequest
from app.runs.snapshots import DEFAULT_BYTES
from app.tasks import details_of, sentence_of
from engine.files.run_library import RunLibrary
from engine.spec.control import RunControl

SWITCH_SECONDS = 0.0005
BREATH_SECONDS = 0.08


@dataclass(frozen=True)
class Group:
    """Runs that advance in turn, one iteration each, behind one set of buttons."""

    requests: tuple[RunRequest, ...]
    control: RunControl = field(default_factory=RunControl)


class RunWorker(Worker):
    """A queue of groups of runs, and the buttons of the one that is being worked on.

    The runs of a group take turns: two methods at the same iteration can be watched side by
    side, each step is still timed alone, and since every run has its own random generators the
    results are those of runs made one after the other.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        snapshot_bytes: int = DEFAULT_BYTES,
        library: RunLibrary | None = None,
    ) -> None:
        super().__init__(mailbox)
        self.run_library = library
        self.snapshot_bytes = snapshot_bytes
        self.shown = DisplayRequest()
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Group | None] = queue.SimpleQueue()
        self._waiting: list[Group] = []
        self._current: Group | None = None
        self._closing = False
        self._warm = False

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """Queue runs that belong together; no requests only warm the engine up."""
        group = Group(tuple(requests))
        with self._lock:
            if self._closing:
                return
            self._waiting.append(group)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="runs", daemon=True)
                self._thread.start()
        self._queue.put(group)

    def show(self, wanted: Iterable[str], sample: int = 0) -> None:
        """Choose what frames hold; takes effect with the next one, also while paused."""
        self.shown = DisplayRequest(frozenset(wanted), sample)
        self.control.refresh()

    @property
    def control(self) -> RunControl:
        """Of the running group, or of the first that waits: a press is never lost."""
        with self._lock:
            group = self._current or (self._waiting[0] if self._waiting else None)
        return group.control if group else RunControl()

    def request_close(self) -> None:
        """Stop everything and let the thread end; what was computed is saved, to go on with."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            groups = [*self._waiting, *([self._current] if self._current else [])]
        for group in groups:
            group.control.leave()
        self._queue.put(None)

    def _work(self) -> None:
        # The GUI thread asks for the interpreter many times per repaint; with the usual 5 ms
        # it would wait that long each time while a solver is busy in Python.
        sys.setswitchinterval(SWITCH_SECONDS)
        while (group := self._queue.get()) is not None:
            with self._lock:
                self._waiting.remove(group)
                self._current = group
            try:
                # The window redraws for the runs it has just asked for; preparing them at the
                # same time would make it wait for the interpreter at every widget.
                time.sleep(BREATH_SECONDS)
                from app.runs.run_group import Screen, run_group

                if not self._warm:
                    self._warm = True
                    # What torch brought stays: without this, a full collection walks through
                    # it now and then, for over 100 ms, in whichever thread it happens.
                    gc.freeze()
                shown = lambda: self.shown  # noqa: E731
                screen = Screen(self.mailbox, shown, self.snapshot_bytes, self.run_library)
                run_group(group.requests, group.control, screen)
            except Exception as error:  # a bug must reach the person, not end the thread
                self._fail(group, error)
            finally:
                with self._lock:
                    self._current = None
                    empty = not self._waiting
            if empty:
                self.mailbox.post(QueueEmpty())

    def _fail(self, group: Group, error: Exception) -> None:
        sentence, details = sentence_of(error), details_of(error)
        for request in group.requests:
            self.mailbox.post(RunFailed(request.run_id, sentence, details, expected=False))
