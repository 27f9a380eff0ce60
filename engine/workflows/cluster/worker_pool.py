"""The workers of a run, as the client sees them: who is there, who may work, and at what.

Every task is given to one worker by name. So each worker is greeted before it gets any (that is
when it gets the prior and when its versions are compared), and what it held is known when it
dies. At most two batches are with a worker: one in work, one waiting behind it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

from distributed import Future, wait

from engine.physics.units import IntensityMap
from engine.spec.errors import DualscopeError, RequestError, shown
from engine.workflows.cluster.answers import unpack_facts
from engine.workflows.cluster.connection import Site
from engine.workflows.cluster.payload import Delivery
from engine.workflows.cluster.pulse import Pulse
from engine.workflows.cluster.task import compute, handshake
from engine.workflows.volume.batches import Batch
from engine.workflows.volume.plan import VolumePlan
from engine.workflows.volume.reconstruct import WorkerState

REFRESH_S = 0.5  # between two looks at who is there
WAIT_S = 0.2
RESULT_S = 10.0
SCHEDULER_S = 30.0
GREETING_S = 120.0  # to load the libraries and the prior
MOST_NAME = 100
LOST = "The connection to the scheduler is lost: is it running, and is the network up?"
PATIENCE_S = {"first": 60.0, "again": 60.0}  # without any worker
SAME = ("dualscope", "torch", "numpy", "platform")  # or the bits may differ
MEMORY_STEP = 10_000_000  # smaller changes are not told


@dataclass(frozen=True)
class Given:
    """A batch that a worker has; what it need not send back is kept here."""

    batch: Batch
    intensity: IntensityMap
    references: dict[int, Any]
    key: bytes  # of the answer's seal
    parcel_sha256: bytes


@dataclass
class Member:
    """One worker process."""

    address: str
    name: str
    place: str  # its scratch folder, which tells a process from its successor
    greeting: Future | None = None
    ready: bool = False
    fault: str = ""
    tasks: dict[Future, Given] = field(default_factory=dict)  # in the order of their work
    slices: int = 0
    memory: int = 0
    ended: bool = False  # killed by us: another process comes in its place
    checked: bool = False  # something of it was computed here, too, and was the same
    done: list[Batch] = field(default_factory=list)
    pulse: Pulse = field(default_factory=Pulse)

    def heartbeat(self, info: dict[str, Any]) -> None:
        self.memory = int((info.get("metrics") or {}).get("memory") or 0)
        self.pulse.beat(info.get("last_seen"))

    def told(self, lost: bool = False) -> WorkerState:
        state = "computing" if self.tasks else "ready" if self.ready else "starting"
        state = "refused" if self.fault else "lost" if lost else state
        memory = self.memory // MEMORY_STEP * MEMORY_STEP
        return WorkerState(self.name, state, self.slices, memory, self.fault)


class Crew:
    """All workers of a scheduler."""

    def __init__(self, site: Site, plan: VolumePlan, prior: Delivery) -> None:
        self.site, self.client, self.plan, self.prior = site, site.client, plan, prior
        self.members: dict[str, Member] = {}
        self._content = prior.at(self.client)
        self._told: dict[str, WorkerState] = {}
        self._news: list[WorkerState] = []
        self._looked = float("-inf")
        self._hope = time.monotonic()  # when there was a worker last
        self._met = False

    @property
    def busy(self) -> bool:
        return any(member.tasks for member in self.members.values())

    def held(self) -> list[Batch]:
        """Batches that are with workers."""
        return [given.batch for m in self.members.values() for given in m.tasks.values()]

    # -- who is there ------------------------------------------------------------------------

    def refresh(self) -> list[tuple[Batch, bool]]:
        """Look who is there; returns the batches of the dead, and whether each was in work."""
        lost: list[tuple[Batch, bool]] = []
        if time.monotonic() - self._looked < REFRESH_S:
            return lost
        self._looked = time.monotonic()
        present = self._present()
        for address, member in list(self.members.items()):
            info = present.get(address)
            if info is None or info.get("local_directory") != member.place:
                lost += self._lose(member)
        for address, info in present.items():
            member = self.members.get(address) or self._meet(address, info)
            member.heartbeat(info)
        for member in self.members.values():
            self._heard(member)
        return lost

    def _present(self) -> dict[str, dict[str, Any]]:
        try:  # not scheduler_info(), which at times gives a cached answer without workers
            if self.client.status != "running":
                raise ConnectionError(self.client.status)
            identity = self.client.sync(
                self.client.scheduler.identity, n_workers=-1, callback_timeout=SCHEDULER_S
            )
            workers = identity["workers"]
            return {str(a): info for a, info in workers.items() if isinstance(info, dict)}
        except Exception as error:
            raise DualscopeError(LOST) from error

    def _meet(self, address: str, info: dict[str, Any]) -> Member:
        name = shown(info.get("name"))[:MOST_NAME]
        member = Member(address, name, str(info.get("local_directory")))
        member.greeting = self.client.submit(
            handshake,
            self._content,
            self.prior.sha256,
            self.plan.modality,
            self.plan.device,
            **_only(address),
        )
        self.members[address] = member
        return member

    def _heard(self, member: Member) -> None:
        """Take a worker's answer to the greeting."""
        if member.greeting is None:
            return
        if not member.greeting.done():
            if member.pulse.waited() > GREETING_S:
                self.refuse(member, "it does not answer")
            return
        answer, member.greeting = unpack_facts(_answer(member.greeting)), None
        if answer is None:
            self.refuse(member, "it cannot run this program: is dualscope installed there?")
        elif fault := answer.get("fault") or _difference(self.plan.versions, answer):
            self.refuse(member, shown(fault)[:300])
        else:
            member.ready = self._met = True

    def refuse(self, member: Member, fault: str) -> list[tuple[Batch, bool]]:
        """Give a worker nothing more; returns what it had."""
        member.fault, member.ready = fault, False
        return self._taken(member)

    def _lose(self, member: Member) -> list[tuple[Batch, bool]]:
        del self.members[member.address]
        self._news.append(member.told(lost=True))
        return self._taken(member)

    def _taken(self, member: Member) -> list[tuple[Batch, bool]]:
        futures = [*member.tasks, *([member.greeting] if member.greeting else [])]
        batches = [given.batch for given in member.tasks.values()]
        member.tasks.clear()
        member.greeting = None
        self._cancel(futures)
        return [(batch, i == 0) for i, batch in enumerate(batches)]

    def check_any_usable(self) -> None:
        """A run without workers ends in a sentence, not in waiting."""
        usable = [m for m in self.members.values() if not m.fault or m.ended]
        if usable:
            self._hope = time.monotonic()
        elif self.members:
            faults = sorted({f"{m.name}: {m.fault}" for m in self.members.values()})
            raise RequestError(f"No worker can be used ({'; '.join(faults[:3])}).")
        elif time.monotonic() - self._hope > PATIENCE_S["again" if self._met else "first"]:
            what = "All workers are gone" if self._met else "The cluster has no workers"
            raise DualscopeError(f"{what}: start some and try again.")

    # -- work --------------------------------------------------------------------------------

    def free(self, waiting: int) -> Member | None:
        """Who should get the next of ``waiting`` batches; the last ones queue behind nobody."""
        ready = [member for member in self.members.values() if member.ready]
        room = 2 if waiting > len(ready) else 1
        idle = min(ready, key=lambda member: len(member.tasks), default=None)
        return idle if idle is not None and len(idle.tasks) < room else None

    def give(self, member: Member, parcel: bytes, given: Given) -> None:
        if not member.tasks:
            member.pulse.begin()
        member.tasks[self.client.submit(compute, parcel, **_only(member.address))] = given

    def stepped(self, numbers: tuple[int, ...], k: int) -> None:
        """A worker says that its batch has come to iteration ``k``."""
        for member in self.members.values():
            if member.tasks and next(iter(member.tasks.values())).batch.kept == numbers:
                member.pulse.step(k)

    def replace_overdue(self) -> list[tuple[Batch, bool]]:
        """Take away what a worker should have computed long ago; one of ours starts anew."""
        taken: list[tuple[Batch, bool]] = []
        known = [m.pulse.pace for m in self.members.values() if m.pulse.pace is not None]
        slowest = max(known, default=None)
        for member in self.members.values():
            if not member.tasks:
                continue
            batch = next(iter(member.tasks.values())).batch
            late = member.pulse.overdue(len(batch.computed), slowest, alike=self.site.local)
            if late:
                taken += self.refuse(member, f"slice {batch.kept[0]}: {late}")
                if self.site.end is not None:
                    member.ended = True
                    self.site.end(member.address)
        return taken

    def wait(self) -> None:
        """Until something is done, or for a moment."""
        futures = [future for member in self.members.values() for future in member.tasks]
        futures += [m.greeting for m in self.members.values() if m.greeting is not None]
        if not futures:
            time.sleep(WAIT_S)
            return
        with self.client.as_current(), contextlib.suppress(TimeoutError, CancelledError):
            wait(futures, timeout=WAIT_S, return_when="FIRST_COMPLETED")

    def finished(self) -> Iterator[tuple[Member, Given, Any]]:
        """Answers that have come; one that is not from our own code is an exception."""
        for member in list(self.members.values()):
            for future in [future for future in member.tasks if future.done()]:
                if future not in member.tasks:  # refused while we were away
                    continue
                answer = _answer(future)
                if isinstance(answer, TimeoutError | CancelledError):  # its worker is dying, or
                    self._present()  # the scheduler
                    continue
                given = member.tasks.pop(future)
                member.pulse.finish(len(given.batch.computed))
                future.release()
                yield member, given, answer

    def events(self) -> list[WorkerState]:
        """What has changed of the workers since the last time."""
        events, self._news = self._news, []
        for address, member in self.members.items():
            state = member.told()
            if self._told.get(address) != state:
                self._told[address] = state
                events.append(state)
        return events

    def dismiss(self) -> None:
        """Take everything back; what is being computed stops after its iteration."""
        futures = [future for member in self.members.values() for future in member.tasks]
        futures += [m.greeting for m in self.members.values() if m.greeting is not None]
        self._cancel([*futures, *([self._content] if isinstance(self._content, Future) else [])])

    def _cancel(self, futures: list[Future]) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self.client.cancel(futures, force=True)


def _only(address: str) -> dict[str, Any]:
    return {"workers": [address], "allow_other_workers": False, "pure": False}


def _answer(future: Future) -> Any:
    """What a task returned; what it raised instead is returned, too."""
    try:
        return future.result(timeout=RESULT_S)
    except Exception as error:  # anything that a strange worker may raise
        return error


def _difference(ours: dict[str, str], answer: dict[str, Any]) -> str:
    theirs = answer.get("versions")
    theirs = theirs if isinstance(theirs, dict) else {}
    for name in SAME:
        if theirs.get(name) != ours.get(name):
            return f"it has {name} {theirs.get(name)} and this computer {ours.get(name)}"
    return ""
