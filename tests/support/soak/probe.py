"""What a process holds on to, and whether that grows."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from engine.physics.memory import give_memory_back

WARM_UP, WARM_UP_S, SHARE = 0.2, 120.0, 0.2
MOST_GROWTH: Final = 3.0  # per cent, of memory
INTERIM: Final = (".partial", ".part")
RSS: Final = "RSS MB"
METHOD: Final = (
    "RSS after a garbage collection, with freed memory given back to the system: the median of the "
    "last 20 % of the time against the median of the 20 % after the warm-up (the first 20 %, at "
    "least 2 minutes). Anything else has leaked when the least of the last 20 % is above the most "
    "of the 20 % after the warm-up."
)
Sample = dict[str, float]  # 'at' in seconds since the start, and what was measured


def measure(at: float, home: Path) -> Sample:
    """This process, and the interim files below ``home``, when no task is under way."""
    gc.collect()
    give_memory_back()
    found: Sample = {"at": at, "temp files": len(interim_files(home))}
    if not sys.platform.startswith("linux"):
        return found | {"threads": threading.active_count()}
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    children = [path.read_text("ascii").split() for path in _tasks("children")]
    return found | {
        RSS: pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        "threads": len(_tasks("comm")),
        "processes": sum(map(len, children)),
        "file descriptors": len(os.listdir("/proc/self/fd")) - 1,  # of this very listing
    }


def interim_files(home: Path) -> list[Path]:
    """All below ``home``/tmp, and what writers leave beside their target until it is whole."""
    found = [path for path in home.rglob("*") if path.name.endswith(INTERIM)]
    return found + list((home / "tmp").rglob("*"))


@dataclass(frozen=True)
class Leak:
    """One quantity of one process; ``growth`` is in per cent, for memory only."""

    name: str
    start: float
    end: float
    growth: float | None
    leaked: bool

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def leaks(samples: Sequence[Sample]) -> list[Leak]:
    """Empty when the soak was too short to say."""
    if not samples:
        return []
    total = samples[-1]["at"]
    warm = min(max(WARM_UP * total, WARM_UP_S), 0.5 * total)
    first = [one for one in samples if warm <= one["at"] < warm + SHARE * total]
    last = [one for one in samples if one["at"] >= (1 - SHARE) * total]
    if not first or not last:
        return []
    return [_leak(name, first, last) for name in samples[-1] if name != "at"]


def _leak(name: str, first: Sequence[Sample], last: Sequence[Sample]) -> Leak:
    before, after = [one[name] for one in first], [one[name] for one in last]
    if name == RSS:
        start, end = median(before), median(after)
        growth = 100 * (end / start - 1)
        return Leak(name, start, end, growth, growth > MOST_GROWTH)
    return Leak(name, max(before), min(after), None, min(after) > max(before))


def _tasks(name: str) -> list[Path]:
    return list(Path("/proc/self/task").glob(f"*/{name}"))
