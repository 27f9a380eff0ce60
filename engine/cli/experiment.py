"""``dualscope experiment NAME [INPUT ...]``: an experiment of the paper, beside its figures."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from engine.cli.options import add_precision, add_settings, given, progress_bar
from engine.cli.reconstruct import cancel_on_signals
from engine.physics.device import DEVICES, choose_device
from engine.priors.network_prior import check_precision
from engine.spec.control import RunControl
from engine.spec.errors import RequestError
from engine.spec.input_options import InputOptions
from engine.workflows.experiments.catalogue import EXPERIMENTS, find_experiment
from engine.workflows.experiments.plan import Case
from engine.workflows.experiments.request import Request
from engine.workflows.experiments.runner import Pace, Runner, open_runner
from engine.workflows.experiments.store import Row
from engine.workflows.experiments.summary import cell, columns


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="Which one; see --list.")
    parser.add_argument(
        "input",
        nargs="*",
        metavar="INPUT",
        help="Files, folders or demo:ct:SEED. Default: phantoms, all different.",
    )
    parser.add_argument("--list", action="store_true", help="Name the experiments.")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", default=".", help="Default: the current folder."
    )
    parser.add_argument("--overwrite", action="store_true", help="Begin again.")
    parser.add_argument("--slices", metavar="N|A:B[:S]", help="Of every INPUT. Default: all.")
    parser.add_argument(
        "--count",
        type=int,
        metavar="N",
        help="How many slices, spread evenly over those. Default: as the experiment needs.",
    )
    parser.add_argument(
        "--prior", metavar="NAME", default="auto", help="Default: the bundled one of the input."
    )
    parser.add_argument(
        "--network",
        metavar="FILE",
        default="auto",
        help="For 'supervised': what 'prior train --supervised' made. Default: the bundled one.",
    )
    parser.add_argument("--device", metavar="|".join(DEVICES), default="auto")
    add_precision(parser)
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="Default: 0.")
    parser.add_argument("--nfe", type=int, metavar="N", help="One budget for every method.")
    parser.add_argument(
        "--cg-iterations",
        type=int,
        metavar="N",
        help="Steps of the data step. Default: 20 for sparse views, 100 for limited angle.",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="SCAN",
        help="Of the experiment's scans only this one, such as SVCT-20; may be repeated.",
    )
    parser.add_argument(
        "--together",
        type=int,
        metavar="N",
        default=1,
        help="Slices of one INPUT to compute at once: several times as fast where the data step "
        "costs most, and the same numbers but for rounding. Default: 1.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="A tenth of the budgets, one slice: a trial."
    )
    parser.add_argument("--quiet", action="store_true", help="No progress.")
    add_settings(parser, "what the input does not say", InputOptions)


def run(options: argparse.Namespace) -> int:
    console = Console()
    if options.list:
        console.print(_listing())
        return 0
    if options.name is None:
        raise RequestError("NAME is missing: see dualscope experiment --list.")
    request, folder = _request(options), Path(options.output)
    runner = open_runner(request, folder, options.overwrite)
    for sentence in runner.plan.left_out:
        print(f"dualscope: note: {sentence}", file=sys.stderr)
    cases = len(runner.plan.cases)
    if done := cases - len(runner.remaining()):
        print(f"dualscope: {done} of {cases} cases are done already.", file=sys.stderr)
    control = RunControl()
    with cancel_on_signals(control):
        _follow(runner, control, options.quiet)
    rows, written = runner.conclude()
    if rows:
        _print_table(console, request, rows)
    for each in written:
        print(f"  {each}")
    return 130 if control.cancelled else 0


def _request(options: argparse.Namespace) -> Request:
    """Wrong values are refused before anything is read."""
    described = given(options, InputOptions)
    InputOptions(**described)
    if options.device not in DEVICES:
        raise RequestError(
            f"--device '{options.device}' is not known: choose {', '.join(DEVICES)}."
        )
    precision = options.precision or "fp32"
    check_precision(precision, choose_device(options.device))
    return Request(
        find_experiment(options.name),
        tuple(i if i.startswith("demo:") else str(Path(i).absolute()) for i in options.input),
        described,
        options.slices,
        options.count,
        options.prior,
        options.device,
        options.seed,
        options.nfe,
        options.cg_iterations,
        options.quick,
        options.network,
        options.together,
        precision,
        tuple(options.only or ()),
    )


def _follow(runner: Runner, control: RunControl, quiet: bool) -> None:
    """A bar that moves with every iteration; away from a terminal, a line for every case."""
    pace = Pace(runner)
    with progress_bar(quiet) as bar:
        task = bar.add_task(runner.request.experiment.name, total=pace.total, note="")

        def progress(case: Case, share: float, word: str) -> None:
            done = pace.done(case, share)
            bar.update(task, completed=done, note=f"{case.label}  {word}")
            if bar.disable and not quiet and share >= 1:
                left = timedelta(seconds=round(pace.seconds_left(done) or 0))
                print(f"{case.label}: {word or 'done'}; {left} left", file=sys.stderr)

        runner.run(control, progress)


def _listing() -> Table:
    table = Table("name", "question", title="Experiments")
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, experiment.question)
    return table


def _print_table(console: Console, request: Request, rows: list[Row]) -> None:
    trial = " (a quick trial: not the paper's budgets)" if request.quick else ""
    table = Table(title=request.experiment.question + trial)
    shown = columns(request.experiment, rows)
    for column in shown:
        left = column.key in ("scan", "method", "failed")
        table.add_column(column.heading, justify="left" if left else "right")
    for row in rows:
        table.add_row(*(cell(column, row) for column in shown))
    wide = console if console.is_terminal else Console(width=160)
    wide.print(table)
