"""The long loop: a random task, a look at the memory now and then, and so on until the end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from soak.probe import Sample, measure
from soak.tally import Mark, Tally

EVERY_S, LOOKS = 60.0, 60  # measured every minute; a short soak is measured 60 times


@dataclass(frozen=True)
class Task:
    """``weight`` says how often it comes, ``act`` does it once and checks what came of it."""

    name: str
    weight: float
    act: Callable[[Mark], None]


class Loop:
    """``saw`` is called after every measurement, for the report."""

    def __init__(
        self,
        tasks: Sequence[Task],
        random: Random,
        seconds: float,
        home: Path,
        saw: Callable[[Loop], None],
        extra: Callable[[], dict[str, float]] = dict,
    ) -> None:
        self.tasks, self.random, self.seconds, self.home = tasks, random, seconds, home
        self.saw, self.extra = saw, extra
        self.tally = Tally()
        self.samples: list[Sample] = []
        self.stopped = False
        self._began = monotonic()

    @property
    def at(self) -> float:
        return monotonic() - self._began

    def run(self) -> None:
        every, due = min(EVERY_S, self.seconds / LOOKS), 0.0
        for task in self._order():
            if self.at >= self.seconds or self.stopped:
                break
            mark = self.tally.begin(task.name)
            try:
                task.act(mark)
            except Exception:
                mark.unexpected(traceback.format_exc())
            if self.at >= due:
                self.look()
                due = self.at + every
        self.look()

    def _order(self) -> Iterator[Task]:
        """Every task once, so that what first use loads is part of the warm-up; then at random."""
        yield from self.random.sample(self.tasks, len(self.tasks))
        weights = [task.weight for task in self.tasks]
        while True:
            yield self.random.choices(self.tasks, weights)[0]

    def look(self) -> None:
        self.samples.append(measure(self.at, self.home) | self.extra())
        self.saw(self)

    def report(self) -> dict[str, Any]:
        return {"seconds": self.at, "samples": self.samples, **self.tally.to_dict()}
