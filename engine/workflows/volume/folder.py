"""The folder of a volume: its plan, one file per finished slice, and a journal.

Everything is written beside and renamed, so a killed process leaves whole files only. A batch
counts as stored when all slices it keeps are; whatever is missing or damaged is computed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

from engine.files.atomic import ROOM_LOCK, lock_file, remove_partials, write_bytes_atomic
from engine.files.budget import read_json
from engine.files.record import MAX_RECORD_BYTES, plain
from engine.spec.errors import DualscopeError, RequestError, marked
from engine.workflows.volume.batches import Batch, halves
from engine.workflows.volume.compute import SliceResult
from engine.workflows.volume.plan import VolumePlan
from engine.workflows.volume.slice_file import read_slice, slice_name, write_slice

FORMAT, FORMAT_VERSION = "dualscope-volume", 1
PLAN, JOURNAL = "volume.json", "journal.jsonl"


class VolumeFolder:
    """A volume being made or already made.

    ``create`` starts one or goes on with it, and keeps other processes out until ``close``;
    ``open`` only looks. ``division`` is how the volume is really divided: the plan's batches,
    less those that had to be halved for lack of memory.
    """

    def __init__(self, path: Path, plan: VolumePlan, division: tuple[Batch, ...]) -> None:
        self.path, self.plan, self.division = path, plan, division
        self.stored: set[int] = set()
        self._lock: BinaryIO | None = None

    @classmethod
    def create(cls, path: Path, plan: VolumePlan) -> VolumeFolder:
        """A new folder, or the one of an interrupted run of the same plan."""
        _make(path)
        lock = _locked(path)
        try:
            folder = cls(path, plan, plan.batches)
            folder._lock = lock
            for name in (PLAN, *map(slice_name, plan.numbers)):  # a killed writer's
                remove_partials(path / name)
            if (path / PLAN).exists():
                earlier = cls.open(path)
                if difference := earlier.plan.difference(plan):
                    raise RequestError(
                        f"{path} holds another volume ({difference}): name another folder."
                    )
                folder.division, folder.stored = earlier.division, earlier.stored
            else:
                if foreign := [p.name for p in path.iterdir() if p.name != ROOM_LOCK]:
                    raise RequestError(
                        f"{path} holds other things ({min(foreign)[:60]}): name an empty folder."
                    )
                folder._write_plan()
        except BaseException:
            lock.close()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> VolumeFolder:
        """To look at: nothing is written and nobody is kept out."""
        plan, division = _read(path)
        folder = cls(path, plan, division)
        folder.refresh()
        return folder

    def refresh(self) -> None:
        """Look again which slices are stored; those already known are not read again."""
        for number in self.plan.numbers:
            if number not in self.stored and (self.path / slice_name(number)).exists():
                with contextlib.suppress(RequestError):  # damaged: to be computed again
                    self.read(number)
                    self.stored.add(number)

    @property
    def complete(self) -> bool:
        return len(self.stored) == len(self.plan.numbers)

    def pending(self) -> list[Batch]:
        """Batches with a slice that is not stored."""
        return [batch for batch in self.division if not self.stored.issuperset(batch.kept)]

    def read(self, number: int) -> SliceResult:
        return read_slice(self.path, number, self.plan.image_shape)

    def begin(self, batch: Batch) -> None:
        self._note(*({"what": "start", "slice": number} for number in batch.kept))

    def store(self, results: list[SliceResult]) -> None:
        """Keep a batch's slices. The journal calls them stored when all of them are."""
        for result in results:
            if result.number not in self.stored:
                write_slice(self.path, result)
        self.stored.update(result.number for result in results)
        self._note(*({"what": "stored", "slice": r.number, "sha256": r.sha256} for r in results))

    def discard(self, numbers: list[int]) -> None:
        """Slices that are not to be believed are missing again."""
        for number in numbers:
            self.stored.discard(number)
            (self.path / slice_name(number)).unlink(missing_ok=True)
        self._note(*({"what": "discarded", "slice": number} for number in numbers))

    def halve(self, batch: Batch) -> tuple[Batch, Batch]:
        """Divide a batch that did not fit into memory, for this time and all later ones."""
        parts = halves(batch, self.plan.numbers, self.plan.halo)
        at = self.division.index(batch)
        self.division = (*self.division[:at], *parts, *self.division[at + 1 :])
        self._write_plan()
        self._note({"what": "halved", "slices": batch.kept, "into": [p.kept for p in parts]})
        return parts

    def journal(self) -> list[dict[str, Any]]:
        """What was begun and stored so far, in order; lines that a power cut tore are left out."""
        entries = []
        with contextlib.suppress(FileNotFoundError):
            for line in (self.path / JOURNAL).read_bytes().splitlines():
                with contextlib.suppress(ValueError, RecursionError):
                    entries.append(json.loads(line))
        return [entry for entry in entries if isinstance(entry, dict)]

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> VolumeFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write_plan(self) -> None:
        body = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "plan": self.plan.shareable().to_dict(),
            "division": [batch.to_dict() for batch in self.division],
        }
        content = json.dumps(plain(body), allow_nan=False).encode()
        write_bytes_atomic(self.path / PLAN, content)

    def _note(self, *entries: dict[str, Any]) -> None:
        """Append to the journal; a line that a power cut tore is ended first."""
        stamp = {"time": round(time.time(), 3), "process": os.getpid()}
        lines = "".join(f"{json.dumps(plain(entry | stamp))}\n" for entry in entries)
        try:
            with (self.path / JOURNAL).open("a+b") as stream:
                if stream.tell() and stream.seek(-1, os.SEEK_END) >= 0 and stream.read() != b"\n":
                    lines = "\n" + lines
                stream.write(lines.encode())
        except OSError as error:
            raise DualscopeError(
                f"Cannot write {self.path / JOURNAL}: {error.strerror or error}."
            ) from error


def stored_plan(path: Path) -> VolumePlan | None:
    """The plan that a folder follows already; None if there is none yet."""
    return _read(path)[0] if (path / PLAN).exists() else None


def _read(path: Path) -> tuple[VolumePlan, tuple[Batch, ...]]:
    body = _body(path / PLAN)
    try:
        plan = VolumePlan.from_dict(body.get("plan"))
        division = tuple(Batch.from_dict(batch) for batch in body.get("division", ()))
    except (RequestError, TypeError) as error:
        raise RequestError(f"{path / PLAN}: {marked(error)}") from error
    if tuple(number for batch in division for number in batch.kept) != plan.numbers:
        raise RequestError(f"{path / PLAN} is damaged: its division is not its slices.")
    return plan, division


def _make(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise RequestError(f"{path}: the folder {path.parent} does not exist.") from None
    except FileExistsError:
        raise RequestError(f"{path} is a file, not a folder.") from None
    except OSError as error:
        raise RequestError(f"Cannot make {path}: {error.strerror or error}.") from error


def _locked(path: Path) -> BinaryIO:
    try:
        lock = (path / ROOM_LOCK).open("ab")
    except OSError as error:
        raise RequestError(f"Cannot write into {path}: {error.strerror or error}.") from error
    if not lock_file(lock):
        lock.close()
        raise RequestError(f"{path} is in use: another process is computing this volume.")
    return lock


def _body(path: Path) -> dict[str, Any]:
    body = read_json(path, MAX_RECORD_BYTES, "the plan of a volume")
    known = isinstance(body, dict) and body.get("format") == FORMAT
    if not known or body.get("format_version") != FORMAT_VERSION:
        raise RequestError(f"{path} is not a volume of this version of Dualscope.")
    return body
