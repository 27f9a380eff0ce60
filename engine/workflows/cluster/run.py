"""A volume computed by several processes: the same events, the same bits, the same folder."""

from __future__ import annotations

import dataclasses
import secrets
from collections import Counter, deque
from collections.abc import Generator, Iterator
from typing import Any

import torch
from torch import Tensor

from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, OutOfMemory, RequestError, marked
from engine.workflows.cluster.compute_targets import Where
from engine.workflows.cluster.payload import make_parcel
from engine.workflows.cluster.prior_transfer import delivery_of
from engine.workflows.cluster.worker_pool import Crew, Given, Member
from engine.workflows.volume.batches import Batch, SliceContext
from engine.workflows.volume.compute import SliceResult, Step, planned_threads
from engine.workflows.volume.folder import VolumeFolder
from engine.workflows.volume.reconstruct import Begun, Event, Halved, VolumeRun, named
from engine.workflows.volume.slice_file import most_bytes, unpack_slice

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
        self._steps: deque[Step] = deque(maxlen=1000)

    def _compute(self, waiting: list[Batch]) -> Generator[Event, None, list[Batch]]:
        if not waiting:
            return []
        prior = delivery_of(self.plan.job, self.plan.modality, self.bench.prior)
        with self.where.open() as site:
            self.dashboard = site.dashboard
            site.client.subscribe_topic(TOPIC, self._on_report)
            crew = Crew(site, self.plan, prior)
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
                yield self._steps.popleft()
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
        crew.give(member, parcel.pack(), Given(batch, problem.intensity, references))

    def _taken(
        self, crew: Crew, member: Member, given: Given, answer: Any, waiting: deque[Batch]
    ) -> Iterator[Event]:
        """Store what a worker has computed, or do what its answer asks for."""
        batch = given.batch
        failed, said = _failure(answer)
        if failed == "memory" and len(batch.kept) > 1:
            yield Halved(batch.kept)
            waiting.extendleft(reversed(self.folder.halve(batch)))
        elif failed == "memory":
            raise OutOfMemory
        elif failed == "request":
            raise RequestError(f"Slice {named(batch)}: {said}")
        elif failed == "error":
            raise DualscopeError(f"Slice {named(batch)}: {said}")
        else:
            results = None if failed else self._results(given, answer)
            if results is None:
                fault = f"what it sent for slice {named(batch)} is no such slice"
                self._again([(batch, True), *crew.refuse(member, fault)], waiting)
            else:
                member.slices += len(results)
                yield from self._store(results)

    def _results(self, given: Given, answer: dict[str, Any]) -> list[SliceResult] | None:
        """The slices of an answer, which may be anybody's; None unless all is as it should be."""
        shape, numbers, found = self.plan.image_shape, given.batch.kept, []
        contents = answer.get("slices")
        if not isinstance(contents, list) or len(contents) != len(numbers):
            return None
        for number, content in zip(numbers, contents, strict=True):
            if not isinstance(content, bytes) or len(content) > most_bytes(shape):
                return None
            try:
                result = unpack_slice(content, number, shape)
            except ValueError:
                return None
            if not bool(torch.isfinite(result.image).all()):
                return None
            found.append(
                dataclasses.replace(
                    result, intensity=given.intensity, reference=given.references.get(number)
                )
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


def _failure(answer: Any) -> tuple[str, str]:
    """How a task failed, if it did, and what it said; an exception is not from our code."""
    if not isinstance(answer, dict):
        return "strange", ""
    failed = answer.get("failed", "")
    known = failed in ("", "memory", "request", "error")
    return (failed if known else "strange"), str(answer.get("said", ""))[:1000]
