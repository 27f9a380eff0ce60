"""A volume's reconstruction as a generator of small events; it begins where it was left."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from engine.spec.control import RunControl
from engine.spec.errors import OutOfMemory, RequestError, is_out_of_memory, marked
from engine.workflows.volume.batches import Batch, SliceContext
from engine.workflows.volume.compute import SliceResult, Step, steps_of
from engine.workflows.volume.folder import VolumeFolder


@dataclass(frozen=True)
class Begun:
    """A batch is being computed."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """A slice is safe on the disk."""

    result: SliceResult
    done: int  # slices stored so far
    total: int


@dataclass(frozen=True)
class Halved:
    """Memory ran out: these slices are computed in two parts instead."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class WorkerState:
    """One of several processes that compute the volume; a single one tells nothing of itself."""

    name: str
    state: str  # 'starting', 'ready', 'computing', 'refused' or 'lost'
    slices: int  # computed so far
    memory_bytes: int
    note: str = ""  # why it is refused


Event = Begun | Step | Stored | Halved | WorkerState


class VolumeRun:
    """Iterate over it to make it happen; ``status`` becomes 'done', 'cancelled' or 'failed'.

    A slice that is stored is never begun again, whatever ends the run: cancelling, an error or
    the death of the process lose the batch in hand at most. Of the batches that wait the one that
    ``urgency`` puts lowest comes next; it is asked anew each time.
    """

    def __init__(
        self,
        folder: VolumeFolder,
        bench: SliceContext | None = None,
        control: RunControl | None = None,
        urgency: Callable[[Batch], float] = lambda batch: 0.0,
    ) -> None:
        self.folder, self.plan, self.urgency = folder, folder.plan, urgency
        self.bench = bench or SliceContext(self.plan.job)
        self.control = control or RunControl()
        self.status = "not started"

    def __iter__(self) -> Iterator[Event]:
        self.status = "running"
        try:
            waiting = yield from self._compute(self.folder.pending())
        except GeneratorExit:
            self.status = "cancelled"
            raise
        except BaseException:
            self.status = "failed"
            raise
        self.status = "done" if not waiting else "cancelled"

    def _compute(self, waiting: list[Batch]) -> Generator[Event, None, list[Batch]]:
        """Compute until nothing waits or somebody cancels; returns what waits then."""
        while waiting and self.control.wait():
            waiting = yield from self._batch(waiting)
        return waiting

    def _batch(self, waiting: list[Batch]) -> Generator[Event, None, list[Batch]]:
        """Compute the most urgent of ``waiting``; returns what waits after that."""
        batch = min(waiting, key=self.urgency)
        rest = [other for other in waiting if other is not batch]
        yield Begun(batch.kept)
        self.folder.begin(batch)
        try:
            results = yield from steps_of(self.plan, batch, self.bench, self.control)
        except RequestError as error:
            raise RequestError(f"Slice {named(batch)}: {marked(error)}") from error
        except (OutOfMemory, MemoryError, RuntimeError) as error:
            ran_out = isinstance(error, OutOfMemory) or is_out_of_memory(error)
            if not ran_out:
                raise
            if len(batch.kept) == 1:
                raise OutOfMemory from error
            results = None
        if results is None:  # here, where the failed batch's tensors are free again
            yield Halved(batch.kept)
            return [*self.folder.halve(batch), *rest]
        if not results:  # cancelled
            return waiting
        yield from self._store(results)
        return rest

    def _store(self, results: list[SliceResult]) -> Iterator[Stored]:
        self.folder.store(results)
        done, total = len(self.folder.stored), len(self.plan.numbers)
        for i, result in enumerate(results):
            yield Stored(result, done - len(results) + i + 1, total)


def named(batch: Batch) -> str:
    first, last = batch.kept[0], batch.kept[-1]
    return f"{first}" if first == last else f"{first} to {last}"
