"""The cost of an iteration of several methods, taken in turns so that a busy machine hits all."""

from __future__ import annotations

from statistics import median

import torch

from engine.physics.peak_memory import PeakMemory
from engine.physics.random import SOLVER, make_generator
from engine.runs.prepare import Prepared, new_record
from engine.runs.run import RunControl
from engine.solvers.catalogue import find_solver
from engine.solvers.diagnostics import Stopwatch
from engine.solvers.solver import ScheduleSettings
from engine.spec.errors import DualscopeError, RequestError
from engine.workflows.experiments.measure import Tick
from engine.workflows.experiments.store import Row

ROUNDS = 10
STEPS = ("denoiser", "data", "sh")  # what solvers time themselves; the rest is 'other'


class Lane:
    """One method, advanced by one iteration at a time."""

    def __init__(self, prepared: Prepared) -> None:
        problem, seed = prepared.problem, prepared.job.seed
        self.prepared, self.device = prepared, problem.measurement.device
        generators = [make_generator(seed, self.device, SOLVER + n) for n in problem.slices]
        solver = find_solver(prepared.job.solver)
        self.steps = solver.iterate(problem, prepared.prior, prepared.settings, generators)
        self.rounds: list[dict[str, float]] = []
        self.memory_gb: float | None = None
        self.message = ""

    @property
    def levels(self) -> int:
        settings = self.prepared.settings
        assert isinstance(settings, ScheduleSettings)  # only these methods are timed
        return len(settings.sigmas())

    def advance(self) -> dict[str, float] | None:
        """Seconds of the next iteration by step; None once the method has failed."""
        if self.message:
            return None
        clock = Stopwatch(self.device)
        try:
            with clock("total"), torch.no_grad():
                seconds = next(self.steps).seconds
        except DualscopeError as error:
            self.message = str(error)
            return None
        parts = {name: seconds.get(name, 0.0) for name in STEPS}
        total = clock.seconds["total"]
        return parts | {"other": max(0.0, total - sum(parts.values())), "total": total}

    def row(self) -> Row:
        job = new_record(self.prepared).job
        if self.message or not self.rounds:
            return {"status": "failed", "message": self.message, "job": job}
        typical = {name: median(r[name] for r in self.rounds) for name in (*STEPS, "other")}
        return {
            "status": "done",
            "seconds_by_step": typical,
            "seconds": sum(typical.values()),
            "memory_gb": self.memory_gb,
            "rounds": self.rounds,
            "threads": torch.get_num_threads(),
            "job": job,
        }


def side_by_side(prepared: list[Prepared], control: RunControl, tick: Tick) -> list[Row] | None:
    """Rounds of one iteration each: one to warm up, those that count, one for the memory."""
    lanes = [Lane(each) for each in prepared]
    rounds = min(ROUNDS, min(lane.levels for lane in lanes) - 2)
    if rounds < 1:
        raise RequestError("--nfe is too small: every method must have three iterations or more.")
    turns = rounds + 2
    for turn in range(turns):
        # there and back: what one method leaves in the caches favours none of its neighbours
        order = lanes if turn % 2 else lanes[::-1]
        for place, lane in enumerate(order):
            if not control.wait():
                return None
            if turn == turns - 1:
                with PeakMemory(lane.device) as peak:
                    lane.advance()
                lane.memory_gb = peak.gb
            elif (seconds := lane.advance()) is not None and turn > 0:
                lane.rounds.append(seconds)
            tick((turn * len(lanes) + place + 1) / (turns * len(lanes)), f"round {turn + 1}")
    return [lane.row() for lane in lanes]
