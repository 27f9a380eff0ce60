"""``dualscope compare INPUT --solvers a,b,c``: same problem, same seed, same budget."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses

from rich.console import Console

from engine.cli.options import (
    SHOWN,
    SHOWN_INPUT,
    add_job_options,
    follow,
    job_from,
    unused_options,
)
from engine.cli.parser import Parser
from engine.cli.reconstruct import cancel_on_signals, print_warnings
from engine.export import check_outputs
from engine.export.comparison import table, write
from engine.export.outputs import parse_window
from engine.runs.prepare import make_run, open_dataset, prepare
from engine.runs.verdicts import CLASSICAL, doubts_prior
from engine.solvers.catalogue import parse_variant
from engine.spec.control import RunControl
from engine.spec.errors import RequestError, StepFailed


def add_options(parser: argparse.ArgumentParser) -> None:
    add_job_options(parser)
    parser.add_argument(
        "--solvers",
        default="",
        metavar="A,B,C",
        help="Solvers, each with its own changes if wanted, such as "
        "dc-pnpdp,diffpir,dc-pnpdp:dual=off:injection=none.",
    )
    parser.add_argument(
        "-o",
        "--output",
        nargs="+",
        metavar="OUT",
        default=[],
        help="A figure (.png), the numbers (.json), a report with both (.html).",
    )
    parser.add_argument("--overwrite", action="store_true", help="Replace existing files.")
    parser.add_argument("--window", metavar="C/W", help="Window of the figure, centre/width.")
    parser.add_argument("--quiet", action="store_true", help="No progress bars.")
    if isinstance(parser, Parser):
        parser.show(
            "INPUT --solvers A,B,C [-o OUT ...] [options]",
            {
                "input and output": ("input", *SHOWN_INPUT, "--output", "--overwrite"),
                **SHOWN,
                "method": ("--solvers", *SHOWN["method"]),
            },
            (
                "demo:ct --solvers fbp,diffpir,dc-pnpdp -o figure.png",
                "demo:mri --acceleration 6 --solvers dc-pnpdp,dc-pnpdp:dual=off -o report.html",
            ),
        )


def run(options: argparse.Namespace) -> int:
    names = [name.strip() for name in options.solvers.split(",") if name.strip()]
    if not names:
        raise RequestError("--solvers is missing: for example --solvers fbp,diffpir,dc-pnpdp.")
    variants = [parse_variant(name) for name in names]
    outputs = check_outputs(options.output, options.overwrite, suffixes=(".png", ".json", ".html"))
    window = parse_window(options.window)
    jobs = []
    for solver, changes in variants:
        job = job_from(options, solver.name)
        jobs.append(dataclasses.replace(job, settings=job.settings | changes))
    for name in unused_options(options, *(solver.name for solver, _ in variants)):
        raise RequestError(f"{name} has no effect on any of the solvers.")

    dataset, problem, runs = open_dataset(jobs[0]), None, []
    control = RunControl()
    with cancel_on_signals(control):
        for job in jobs:
            prepared = prepare(job, dataset, problem)
            if problem is None:
                print_warnings(prepared)
            problem = prepared.problem
            done = make_run(prepared, control=control)
            with contextlib.suppress(StepFailed):  # its row says so; the others still count
                follow(done, quiet=options.quiet)
            if control.cancelled:
                break
            runs.append(done)

    labels = names[: len(runs)]
    Console().print(table(labels, runs))
    for label, done in zip(labels, runs, strict=True):
        for sentence in done.record.verdicts.values():
            print(f"{label}: {sentence}")
    if CLASSICAL not in labels and any(doubts_prior(done.record.verdicts) for done in runs):
        print(f"To compare: add {CLASSICAL} to --solvers.")
    for path in outputs:
        write(path, labels, runs, window)
    return 130 if control.cancelled else 0
