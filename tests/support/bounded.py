"""An action in a process of its own, which may grow by 1 GB and use 5 s of the processor.

The limits are the system's: address space, and time of the processor and not of a clock, so that
a busy machine changes nothing.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

GROWTH_BYTES, CPU_SECONDS = 10**9, 5
needs_limits = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs fork, /proc and RLIMIT_AS"
)


@dataclass(frozen=True)
class Outcome:
    sentence: str  # of the refusal; '' when there was none
    kind: str  # of the exception
    value: str  # what the action returned
    growth: int  # bytes of address space, at most
    seconds: float  # of the processor, with those of its children
    signal: int  # that ended it

    def __str__(self) -> str:
        what = self.sentence or self.value or f"ended by {signal.Signals(self.signal).name}"
        return f"{self.growth / 1e6:5.0f} MB  {self.seconds:4.1f} s  {self.kind} {what}"


def run(action: Callable[[], object]) -> Outcome:
    """Fork, limit, act; an action that is ended by a limit has no sentence."""
    gc.collect()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        told = {"kind": "", "sentence": "", "value": ""}
        try:
            before = _pages("VmSize")
            _limit(before)
            told |= _tell(action)
            told |= {"growth": _pages("VmPeak") - before}
        except BaseException as error:
            told |= {"kind": type(error).__name__, "sentence": "", "growth": 0}
        finally:
            os.write(write_end, json.dumps(told).encode()[:60_000])
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        content = stream.read()
    _, status, used = os.wait4(child, 0)
    told = json.loads(content) if content else {"kind": "", "sentence": "", "value": ""}
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    growth = told.pop("growth", 0)
    return Outcome(**told, growth=growth, seconds=used.ru_utime + used.ru_stime, signal=ended)


def _tell(action: Callable[[], object]) -> dict[str, str]:
    try:
        value = action()
    except Exception as error:
        return {"kind": type(error).__name__, "sentence": str(error)}
    return {"value": str(value)[:500]}


def _limit(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size + GROWTH_BYTES, size + GROWTH_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _pages(name: str) -> int:
    with open("/proc/self/status") as stream:
        line = next(line for line in stream if line.startswith(name + ":"))
    return int(line.split()[1]) * 1024
