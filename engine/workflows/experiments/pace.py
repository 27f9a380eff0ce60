"""How far an experiment is, by the work of its cases, and how long is left."""

from __future__ import annotations

import itertools
import time

from engine.workflows.experiments.plan import Case
from engine.workflows.experiments.runner import Runner


class Pace:
    """Work is counted in denoiser calls; the speed is that of the cases made since the start."""

    def __init__(self, runner: Runner) -> None:
        waiting = runner.remaining()
        ends = itertools.accumulate(case.work for case in waiting)
        self.total = sum(case.work for case in waiting)
        self.earlier = sum(case.work for case in runner.plan.cases) - self.total
        self._key = runner.key
        self._before = {
            runner.key(case): end - case.work for case, end in zip(waiting, ends, strict=True)
        }
        self._started = time.monotonic()

    def done(self, case: Case, share: float) -> float:
        """The work that is done when this share of a case is."""
        return self._before[self._key(case)] + share * case.work

    def fraction(self, done: float) -> float:
        """Of the whole experiment, with what an earlier start has done."""
        return (self.earlier + done) / (self.earlier + self.total)

    def seconds_left(self, done: float) -> float | None:
        return (time.monotonic() - self._started) * (self.total / done - 1) if done else None
