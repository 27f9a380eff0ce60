"""The table of an experiment: means over slices beside the figures of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

import torch

from engine.physics.memory import PeakMemory
from engine.physics.random import SOLVER, make_generator
from engine.runs.prepare import Prepared, new_record
from engine.solvers.catalogue import find_solver
from engine.solvers.diagnostics import Stopwatch
from engine.solvers.solver import ScheduleSettings
from engine.spec.control import RunControl
from engine.spec.errors import DualscopeError, RequestError, Sentence
from engine.workflows.experiments.definition import Experiment
from engine.workflows.experiments.measure import Tick
from engine.workflows.experiments.paper import RUNTIME
from engine.workflows.experiments.store import Row

BASELINE = "DiffPIR"  # what the cost of an iteration is compared with


@dataclass(frozen=True)
class Column:
    key: str
    heading: str
    form: str = ""  # of a number
    always: bool = False  # shown even when empty


QUALITY = (
    Column("scan", "scan"),
    Column("method", "method"),
    Column("nfe", "NFE"),
    Column("slices", "slices"),
    Column("psnr", "PSNR dB", ".2f"),
    Column("psnr_sd", "SD", ".2f"),
    Column("ssim", "SSIM", ".3f"),
    Column("paper_psnr", "paper PSNR", ".2f", always=True),
    Column("paper_ssim", "paper SSIM", ".3f", always=True),
    Column("chi2", "chi-square"),
    Column("noise_found", "SD found / true"),
    Column("residual", "|Az - y|", ".4g"),
    Column("dual", "|u|", ".3g"),
    Column("off_white_db", "off white dB", ".1f"),
    Column("seconds", "time s", ".1f"),
    Column("failed", "failed"),
)
COST = (
    Column("scan", "scan"),
    Column("method", "method"),
    Column("denoiser_ms", "denoise ms", ".1f"),
    Column("data_ms", "data ms", ".1f"),
    Column("sh_ms", "SH ms", ".2f"),
    Column("other_ms", "other ms", ".1f"),
    Column("total_ms", "total ms", ".1f"),
    Column("sh_percent", "SH %", ".2f"),
    Column("relative", f"/ {BASELINE}", ".3f"),
    Column("memory_gb", "memory GB", ".3f"),
    Column("paper_ms", "paper ms", ".1f", always=True),
    Column("paper_sh_percent", "paper SH %", ".2f", always=True),
    Column("paper_relative", f"paper / {BASELINE}", ".3f", always=True),
    Column("paper_memory_gb", "paper GB", ".0f", always=True),
    Column("failed", "failed"),
)


def columns(experiment: Experiment, rows: list[Row]) -> list[Column]:
    """Those of the experiment that say something."""
    shown = COST if experiment.measure == "side by side" else QUALITY
    return [c for c in shown if c.always or any(row.get(c.key) is not None for row in rows)]


def cell(column: Column, row: Row) -> str:
    value = row.get(column.key)
    if value is None:
        return "-"
    return f"{value:{column.form}}"


def summarise(experiment: Experiment, cases: dict[str, list[Row]]) -> list[Row]:
    """One row per scan and method, in the order of the definition."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in (row for rows in cases.values() for row in rows):
        found.setdefault((row["scan"], row["method"]), []).append(row)
    names = [(s.label, m.label) for s in experiment.scans for m in experiment.methods]
    ordered = [name for name in dict.fromkeys(names) if name in found]
    if experiment.measure == "side by side":
        return [_cost(name, found[name], found.get((name[0], BASELINE), [])) for name in ordered]
    return [_quality(experiment, name, found[name]) for name in ordered]


def _quality(experiment: Experiment, name: tuple[str, str], rows: list[Row]) -> Row:
    done = [row for row in rows if row["status"] == "done"]
    psnr = _values(done, "psnr")
    paper = experiment.paper.get(name, {})
    return {
        **_head(name, rows, done),
        "nfe": next(iter(_values(done, "nfe")), None) or None,  # methods without a denoiser: 0
        "slices": len(done),
        "psnr": _mean(psnr),
        "psnr_sd": stdev(psnr) if len(psnr) > 1 else None,
        "ssim": _mean(_values(done, "ssim")),
        "chi2": _range(_values(done, "chi2")),
        "noise_found": _range([one for row in _values(done, "noise_found") for one in row]),
        "residual": _mean(_values(done, "residual")),
        "dual": _mean(_values(done, "dual")) or None,  # methods without a dual: 0
        "off_white_db": _mean(_values(done, "off_white_db")),
        "seconds": _mean(_values(done, "seconds")),
        "paper_psnr": paper.get("psnr"),
        "paper_ssim": paper.get("ssim"),
    }


def _cost(name: tuple[str, str], rows: list[Row], baseline: list[Row]) -> Row:
    done = [row for row in rows if row["status"] == "done"]
    steps = {
        step: _mean([row["seconds_by_step"][step] for row in done])
        for step in ("denoiser", "data", "sh", "other")
    }
    total = _mean(_values(done, "seconds"))
    out = {f"{step}_ms": None if s is None else 1e3 * s for step, s in steps.items()}
    return {
        **_head(name, rows, done),
        **out,
        "total_ms": None if total is None else 1e3 * total,
        "sh_percent": 100 * steps["sh"] / total if steps["sh"] and total else None,
        "relative": relative(done, [row for row in baseline if row["status"] == "done"]),
        "memory_gb": _mean(_values(done, "memory_gb")),
        **_paper_cost(name[1]),
    }


def relative(rows: list[Row], baseline: list[Row]) -> float | None:
    """Median over the rounds of the ratio to the baseline's iteration of the same round."""
    ratios = [
        mine["total"] / other["total"]
        for row, base in zip(rows, baseline, strict=False)
        for mine, other in zip(row["rounds"], base["rounds"], strict=True)
    ]
    return median(ratios) if ratios else None


def _paper_cost(method: str) -> Row:
    printed = RUNTIME.get(method, {})
    parts = [printed[step] for step in ("denoiser", "data", "sh") if step in printed]
    total = printed.get("total") or (sum(parts) if parts else None)
    return {
        "paper_ms": None if total is None else 1e3 * total,
        "paper_sh_percent": 100 * printed["sh"] / total if total and "sh" in printed else None,
        "paper_relative": None if total is None else total / RUNTIME[BASELINE]["total"],
        "paper_memory_gb": printed.get("memory_gb"),
    }


def _head(name: tuple[str, str], rows: list[Row], done: list[Row]) -> Row:
    messages = [row.get("message") or "failed" for row in rows if row["status"] != "done"]
    failed = f"{len(messages)} of {len(rows)}: {messages[0]}" if messages else None
    return {"scan": name[0], "method": name[1], "failed": failed}


def _values(rows: Iterable[Row], key: str) -> list[Any]:
    return [row[key] for row in rows if row.get(key) is not None]


def _range(values: list[float]) -> str | None:
    return f"{min(values):.2f} to {max(values):.2f}" if values else None


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


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
            self.message = Sentence(error)
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
        raise RequestError("⟦nfe⟧ is too small: every method must have three iterations or more.")
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
