"""Thousands of damaged files through one reader: read or refused, and nothing else happens."""

from __future__ import annotations

import random
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import Watch, listing

from engine.spec.errors import DualscopeError

PART = 500  # cases of one test, so that tests can share them out among processes
LONGEST_MESSAGE = 2000
SECONDS = 30  # of a machine that is busy with other things; a hang lasts longer


class TooSlow(BaseException):
    """Not an Exception: a reader that catches everything must not catch this."""


@dataclass
class Counts:
    read: int = 0
    refused: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)  # seed, what happened

    def __str__(self) -> str:
        return f"{self.read} read, {self.refused} refused, {len(self.wrong)} wrong"


@dataclass(frozen=True)
class Room:
    """A home, a folder for temporary files, a working folder, and the folder of the files."""

    root: Path

    @property
    def target(self) -> Path:
        return self.root / "target"


def run_cases(
    room: Room,
    seeds: range,
    path: Path,
    good: bytes,
    damage: Callable[[random.Random], bytes],
    use: Callable[[random.Random], object],
) -> Counts:
    """``use`` does with the file at ``path`` what the program does with such a file."""
    counts = Counts()
    path.write_bytes(good)
    for seed in range(20):  # the undamaged file is read, or nothing is tested
        use(random.Random(seed))
    before = _outside(room)
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, _on_alarm)
    for seed in seeds:
        rng = random.Random(seed)
        path.write_bytes(damage(rng))
        watch = Watch(room.target)
        trouble = ""
        try:
            if sys.platform != "win32":
                signal.alarm(SECONDS)
            with watch:
                use(rng)
            counts.read += 1
        except DualscopeError as error:
            counts.refused += 1
            trouble = fault_of_message(str(error))
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            trouble = f"{type(error).__name__}: {error} ({where.name}, {where.lineno})"[:300]
        finally:
            if sys.platform != "win32":
                signal.alarm(0)
        done = [*watch.written, *watch.acted, *watch.connected]
        if trouble or done:
            counts.wrong.append((seed, "; ".join([trouble, *done])))
    if _outside(room) != before:
        counts.wrong.append((-1, "files outside of the target folder have changed"))
    return counts


def fault_of_message(message: str) -> str:
    """What is wrong with what a person would be shown."""
    if not message.strip() or "\n" in message.strip():
        return f"not one sentence: {message[:200]!r}"
    return f"a message of {len(message)} signs" if len(message) > LONGEST_MESSAGE else ""


def _outside(room: Room) -> dict[str, tuple[int, int]]:
    target = room.target.name
    found = listing(room.root)
    return {name: what for name, what in found.items() if Path(name).parts[0] != target}


def _on_alarm(number: int, frame: object) -> None:
    raise TooSlow(f"longer than {SECONDS} s")
