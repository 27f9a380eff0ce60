"""``dualscope bench WHAT``: ratios measured side by side in one run."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from engine.cli import bench_app
from engine.export import check_outputs
from engine.files.atomic import write_bytes_atomic
from engine.runs.prepare import make_run, prepare, versions
from engine.spec.errors import RequestError
from engine.spec.job import Job

MEASURED = ("projectors", "solvers", "training", "app", "busy", "cluster")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="|".join(MEASURED), help="What to measure.")
    parser.add_argument(
        "-o", "--output", nargs="+", default=[], metavar="OUT.json", help="Keep the numbers."
    )
    parser.add_argument("--overwrite", action="store_true", help="Replace existing files.")
    parser.add_argument(
        "--prior",
        default="auto",
        metavar="NAME",
        help="Prior of `bench solvers` and `bench busy`. Default: the best for CT.",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        metavar="N",
        help="Rounds, of which the median counts. Default: 5.",
    )
    parser.add_argument(
        "--slices",
        type=int,
        default=1000,
        metavar="N",
        help="Slices of the longest run of `bench cluster`. Default: 1000.",
    )


def run(options: argparse.Namespace) -> int:
    if options.what not in MEASURED:
        raise RequestError(
            f"'{options.what}' cannot be measured: choose {', '.join(MEASURED[:-1])} "
            f"or {MEASURED[-1]}."
        )
    if options.rounds < 1:
        raise RequestError(f"--rounds must be at least 1, not {options.rounds}.")
    if not 10 <= options.slices <= 100_000:
        raise RequestError(f"--slices must be from 10 to 100000, not {options.slices}.")
    outputs = check_outputs(options.output, options.overwrite, suffixes=(".json",))
    if options.what == "cluster":
        from engine.cli import bench_cluster

        rows = bench_cluster.measure(options.slices, options.prior)
        show_tables(rows)
    elif options.what == "projectors":
        from engine.cli import bench_projectors

        rows = bench_projectors.measure(options.rounds)
        show_tables(rows)
    elif options.what == "training":
        from engine.cli import bench_training

        rows = bench_training.measure(options.rounds)
        show("Forward and backward pass of 4 slices of 256 x 256", rows)
    elif options.what == "busy":
        from engine.cli import bench_busy

        rows = bench_busy.measure(options.prior, options.rounds)
        show("One call of a prior, one 256 x 256 slice, beside other processes", rows)
    elif options.what == "app":
        rows = bench_app.window(options.rounds)
        show("The workstation, without a display", rows)
    else:
        rows = solvers(options.prior, options.rounds)
        show("One outer iteration of DC-PnPDP, one 256 x 256 slice", rows)
    result = {
        "what": options.what,
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "rows": rows,
    }
    for path in outputs:
        _write(path, result)
    return 0


def _write(path: Path, result: dict[str, Any]) -> None:
    write_bytes_atomic(path, json.dumps(result, indent=1).encode())


def show_tables(rows: list[dict[str, Any]]) -> None:
    """Every row names its table."""
    for title in dict.fromkeys(row["table"] for row in rows):
        kind = [row for row in rows if row["table"] == title]
        show(title, [{k: v for k, v in row.items() if k != "table"} for row in kind])


def show(title: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=title)
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading in ("case", "projector") else "right")
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=140).print(table)


def interleaved_times(
    work: dict[str, Callable[[], object]], rounds: int, warm: bool = True
) -> dict[str, list[float]]:
    """Seconds of every round, all measured in turn so that a busy machine is fair to all.

    With ``warm`` there is a round before, which fills caches and does not count.
    """
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + warm):
        for name, act in work.items():
            start = time.perf_counter()
            act()
            if turn >= warm:
                times[name].append(time.perf_counter() - start)
    return times


def interleaved_medians(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    times = interleaved_times(work, rounds)
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


def solvers(prior: str, rounds: int) -> list[dict[str, Any]]:
    """Where an outer iteration's time goes, for the paper's two CT settings."""
    sparse, limited = {"views": 20}, {"views": 90, "angular_range": 90.0}
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "SVCT-20, 10 ramp CG": (sparse, {"preconditioner": "ramp"}),
        "SVCT-20, 20 CG": (sparse, {"preconditioner": "none"}),
        "LACT-90, 100 CG": (limited, {"cg_iterations": 100, "preconditioner": "none"}),
        "LACT-90, 20 filtered CG": (limited, {"preconditioner": "filtered"}),
    }
    rows = []
    for case, (acquisition, settings) in cases.items():
        # tolerance 0: every CG step is taken, so that the row shows the whole cost
        settings = settings | {"nfe": rounds + 1, "cg_tolerance": 0.0}
        job = Job("demo:ct", acquisition=acquisition, settings=settings, prior=prior)
        steps, marks = [], []
        for iteration in make_run(prepare(job)):
            steps.append(iteration.seconds)
            marks.append(time.perf_counter())
        wall = [b - a for a, b in itertools.pairwise(marks)]
        median = {
            name: 1e3 * sorted(step[name] for step in steps[1:])[len(wall) // 2]
            for name in ("data", "sh", "denoiser")
        }
        total = 1e3 * sorted(wall)[len(wall) // 2]
        other = max(0.0, total - sum(median.values()))
        rows.append(
            {
                "case": case,
                "data ms": median["data"],
                "SH ms": median["sh"],
                "diagnostics ms": other,
                "denoiser ms": median["denoiser"],
                "overhead / denoiser": (total - median["denoiser"]) / median["denoiser"],
            }
        )
    return rows
