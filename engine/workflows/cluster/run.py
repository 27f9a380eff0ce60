"""A volume computed by several processes: the same events, the same bits, the same folder."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections import Counter, deque
from collections.abc import Generator, Iterator
from typing import Any

import torch
from torch import Tensor

from engine.spec.control import RunControl
from engine.spec.errors import (
    DualscopeError,
    OutOfMemory,
    RequestError,
    is_out_of_memory,
    marked,
    shown,
)
from engine.workflows.cluster.answers import (
    ERROR,
    MEMORY,
    REQUEST,
    SAID,
    SLICES,
    unpack_answer,
)
from engine.workflows.cluster.compute_targets import Where
from engine.workflows.cluster.payload import delivery_of, make_parcel
from engine.workflows.cluster.worker_pool import Crew, Given, Member
from engine.workflows.volume.batches import Batch, SliceContext
from engine.workflows.volume.compute import SliceResult, Step, compute_batch, planned_threads
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.reconstruct import Begun, Event, Halved, VolumeRun, named
from engine.workflows.volume.slice_file import most_bytes, pack_slice, unpack_slice

TOPIC = "dualscope"
MOST_DEATHS = 3  # of workers that were computing the same batch


class ClusterRun(VolumeRun):
    """Iterate over it like a ``VolumeRun``.

    This process reads the data and stores the slices; workers see neither files nor names. Only
    what is with workers is in memory, however many slices there are.
    """

    def __init__(
        self,
        folder: VolumeFolder,
        where: Where,
        bench: SliceContext | None = None,
        control: RunControl | None = None,
    ) -> None:
        super().__init__(folder, bench, control)
        self.where = where
        self.dashboard: str | None = None  # while the run goes on
        self._id = secrets.token_hex(8)
        self._deaths: Counter[Batch] = Counter()
        self._strangers = False  # workers that somebody else has started
        self._steps: deque[Step] = deque(maxlen=1000)

    def _compute(self, waiting: list[Batch]) -> Generator[Event, None, list[Batch]]:
        if not waiting:
            return []
        prior = delivery_of(self.plan.job, self.plan.modality, self.bench.prior)
        with self.where.open() as site:
            self.dashboard = site.dashboard
            site.client.subscribe_topic(TOPIC, self._on_report)
            crew = Crew(site, self.plan, prior)
            self._strangers = not site.local
            try:
                return (yield from self._with(crew, deque(waiting)))
            finally:
                crew.dismiss()
                self.dashboard = None

    def _with(self, crew: Crew, waiting: deque[Batch]) -> Generator[Event, None, list[Batch]]:
        while waiting or crew.busy:
            if self.control.cancelled or self.control.finishing:
                return [*crew.held(), *waiting]
            self._again(crew.refresh(), waiting)
            crew.check_any_usable()
            while not self.control.paused and waiting and (member := crew.free(len(waiting))):
                yield from self._give(crew, member, waiting.popleft())
            crew.wait()
            for member, given, answer in crew.finished():
                yield from self._taken(crew, member, given, answer, waiting)
            while self._steps:
                step = self._steps.popleft()
                crew.stepped(step.numbers, step.k)
                yield step
            self._again(crew.replace_overdue(), waiting)
            yield from crew.events()
        return []

    def _give(self, crew: Crew, member: Member, batch: Batch) -> Iterator[Event]:
        yield Begun(batch.kept)
        self.folder.begin(batch)
        job, intensity = self.plan.job, self.bench.prior.info.intensity
        try:
            with planned_threads(self.plan.threads):
                problem = self.bench.dataset.problem(
                    batch.computed, job.acquisition, intensity, job.seed
                )
        except RequestError as error:
            raise RequestError(f"Slice {named(batch)}: {marked(error)}") from error
        parcel = make_parcel(self._id, self.plan, batch, problem, self.bench.prior.info.sha256)
        references = dict(zip(batch.computed, _images(problem.reference), strict=False))
        content = parcel.pack()
        sha256 = hashlib.sha256(content).digest()
        crew.give(member, content, Given(batch, problem.intensity, references, parcel.key, sha256))

    def _taken(
        self, crew: Crew, member: Member, given: Given, answer: Any, waiting: deque[Batch]
    ) -> Iterator[Event]:
        """Store what a worker has computed, or do what its answer asks for."""
        batch = given.batch
        try:
            kind, parts = unpack_answer(answer, given.key, given.parcel_sha256)
            results = self._results(given, parts) if kind == SLICES else []
        except ValueError:
            fault = f"what it sent for slice {named(batch)} is no such slice"
            self._again([(batch, True), *crew.refuse(member, fault)], waiting)
            return
        said = b"".join(parts)[:SAID].decode(errors="replace") if kind != SLICES else ""
        if kind == MEMORY and len(batch.kept) > 1:
            yield Halved(batch.kept)
            waiting.extendleft(reversed(self.folder.halve(batch)))
        elif kind == MEMORY:
            raise OutOfMemory
        elif kind in (REQUEST, ERROR):
            yield from self._doubted(crew, member, batch, said, waiting)
        elif not self._is_checked(member):
            member.slices += len(results)
            member.done.append(batch)
            yield from self._store(results)
        else:
            yield from self._compared(crew, member, batch, results, waiting)

    def _is_checked(self, member: Member) -> bool:
        """Whether a batch is computed here, too; the first one of a stranger always."""
        every = self.where.check_every
        first = self._strangers and not member.checked
        return every > 0 and (first or secrets.randbelow(every) == 0)

    def _doubted(
        self, crew: Crew, member: Member, batch: Batch, said: str, waiting: deque[Batch]
    ) -> Iterator[Event]:
        """A worker says that a batch cannot be computed: so this computer should fail, too."""
        ours = self._computed_here(batch)
        if ours is None:
            raise DualscopeError(f"Slice {named(batch)}: {said}")
        if not ours:  # cancelled
            waiting.appendleft(batch)
            return
        fault = shown(f"it fails at slice {named(batch)}, which this computer can do ({said})")
        self._again(crew.refuse(member, fault), waiting)
        yield from self._store(ours)

    def _computed_here(self, batch: Batch) -> list[SliceResult] | None:
        """By this process; nothing if cancelled, None where it has not enough memory."""
        try:
            return compute_batch(self.plan, batch, self.bench, self.control)
        except RequestError as error:
            raise RequestError(f"Slice {named(batch)}: {marked(error)}") from error
        except (OutOfMemory, MemoryError, RuntimeError) as error:
            if not (isinstance(error, OutOfMemory) or is_out_of_memory(error)):
                raise
            return None

    def _compared(
        self,
        crew: Crew,
        member: Member,
        batch: Batch,
        results: list[SliceResult],
        waiting: deque[Batch],
    ) -> Iterator[Event]:
        """Store a batch if this computer gets the same bits; else all of the worker's is redone."""
        ours = self._computed_here(batch)
        if ours is None:  # this computer cannot tell
            ours = results
        if not ours:  # cancelled
            waiting.appendleft(batch)
        elif list(map(_bits, ours)) == list(map(_bits, results)):
            member.checked = True
            member.slices += len(results)
            member.done.append(batch)
            yield from self._store(results)
        else:
            fault = (
                f"slice {named(batch)} from it differs from what this computer computes, "
                "so all its slices are done again"
            )
            redone = [b for b in self.folder.division if set(b.kept) & _kept(member.done)]
            self.folder.discard(sorted(_kept(redone)))
            member.done.clear()
            self._again([*((b, False) for b in redone), *crew.refuse(member, fault)], waiting)
            yield from self._store(ours)

    def _results(self, given: Given, contents: list[bytes]) -> list[SliceResult]:
        """The slices of an answer; `ValueError` unless all is as it should be."""
        shape, numbers, found = self.plan.image_shape, given.batch.kept, []
        if len(contents) != len(numbers) or max(map(len, contents)) > most_bytes(shape):
            raise ValueError("not these slices")
        for number, content in zip(numbers, contents, strict=True):
            result = unpack_slice(content, number, shape)
            if not bool(torch.isfinite(result.image).all()):
                raise ValueError("not finite")
            reference = given.references.get(number)
            found.append(
                dataclasses.replace(result, intensity=given.intensity, reference=reference)
            )
        return found

    def _again(self, lost: list[tuple[Batch, bool]], waiting: deque[Batch]) -> None:
        """Queue batches of dead workers once more, in front, but not for ever."""
        for batch, in_work in reversed(lost):
            waiting.appendleft(batch)
            self._deaths[batch] += in_work
            if self._deaths[batch] > MOST_DEATHS:
                raise DualscopeError(
                    f"Slice {named(batch)}: {self._deaths[batch]} workers died of it, one after "
                    "the other; do they have enough memory?"
                )

    def _on_report(self, event: tuple[float, Any]) -> None:
        """In the client's thread; any worker of the scheduler may have sent it."""
        message = event[1]
        if isinstance(message, dict) and message.get("run") == self._id:
            try:
                numbers = tuple(int(number) for number in message["numbers"])
                self._steps.append(Step(numbers, int(message["k"]), max(1, int(message["K"]))))
            except (KeyError, TypeError, ValueError):
                return


def _images(batch: Tensor | None) -> list[Tensor]:
    """References as they are stored: one by one, in memory of their own."""
    if batch is None:
        return []
    return [image.detach().to("cpu", torch.float32).contiguous().clone() for image in batch]


def _bits(result: SliceResult) -> bytes:
    """All of a slice that does not depend on who computed it."""
    return pack_slice(dataclasses.replace(result, seconds=0.0, reference=None))


def _kept(batches: list[Batch]) -> set[int]:
    return {number for batch in batches for number in batch.kept}
