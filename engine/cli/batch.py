"""``dualscope batch FOLDER -o RESULTS``: every input of a folder, and one table."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from datetime import timedelta
from pathlib import Path

from engine.cli.options import (
    PRESET_NAMES,
    SHOWN,
    add_job_options,
    job_from,
    progress_bar,
    solver_help,
    unused_options,
)
from engine.cli.parser import Parser
from engine.cli.reconstruct import cancel_on_signals
from engine.export.outputs import parse_window
from engine.files.presets import Preset
from engine.solvers.catalogue import find_solver
from engine.spec.control import RunControl
from engine.spec.errors import RequestError, shown
from engine.workflows.folder.request import (
    DEFAULT_SOLVER,
    SETTLE_SECONDS,
    FolderRequest,
    find_presets,
    known_formats,
    solver_of,
)
from engine.workflows.folder.runner import FolderRunner
from engine.workflows.folder.table import DONE, FAILED, HTML_NAME, LEFT_OUT, STOPPED, Row


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "INPUT is the folder. --preset also takes the name of a preset of the window, or its "
        ".json file. Exit code 0: all is done; 1: an input failed; 130: stopped, and the same "
        "command goes on. A folder that is watched is watched until Ctrl-C, which is then 0."
    )
    add_job_options(parser)
    parser.add_argument("-o", "--output", metavar="RESULTS", help="The folder for the results.")
    parser.add_argument(
        "--solver", metavar="NAME", help=f"{solver_help()} Default: the preset's, or dc-pnpdp."
    )
    parser.add_argument(
        "--formats",
        metavar="A,B",
        default="dcm,png",
        help=f"What is written of each: {', '.join(known_formats())}. Default: dcm,png.",
    )
    parser.add_argument("--window", metavar="C/W", help="Window of .png output, centre/width.")
    parser.add_argument("--watch", action="store_true", help="Go on looking for new inputs.")
    parser.add_argument(
        "--settle",
        type=float,
        metavar="SECONDS",
        default=SETTLE_SECONDS,
        help="Take a file when it has not changed for so long. Default: 5.",
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="Try again what has failed before."
    )
    parser.add_argument("--quiet", action="store_true", help="No progress, no summary.")
    if isinstance(parser, Parser):
        parser.show(
            "FOLDER -o RESULTS [options]",
            {
                "input and output": ("--unit", "--output", "--formats", "--deidentify"),
                "going on": ("--watch", "--retry-failed"),
                **SHOWN,
                "method": ("--solver", *SHOWN["method"]),
            },
            (
                "inputs -o results --solver diffpir",
                "inputs -o results --watch --preset matched-50 --formats nii.gz,png",
            ),
        )


def run(options: argparse.Namespace) -> int:
    control = RunControl()
    runner = FolderRunner(_request(options), control)
    with cancel_on_signals(control):
        _follow(runner, options.quiet)
    if not options.quiet:
        _summary(runner)
    if options.watch:
        return 0
    return 130 if control.cancelled else int(runner.failed())


def _request(options: argparse.Namespace) -> FolderRequest:
    """Wrong values are refused before anything is read."""
    if options.input is None or options.input.startswith("demo:"):
        raise RequestError("FOLDER is missing: name the folder of the inputs.")
    if options.output is None:
        raise RequestError("Where to? Name a folder for the results with -o.")
    presets: tuple[Preset, ...] = ()
    if options.preset is not None and options.preset not in PRESET_NAMES:
        presets, options.preset = find_presets(options.preset), None
    solver = options.solver or solver_of(presets) or DEFAULT_SOLVER
    find_solver(solver)
    for name in unused_options(options, solver):
        print(f"dualscope: note: {name} has no effect on {solver}.", file=sys.stderr)
    job = dataclasses.replace(job_from(options, solver), input="")
    if presets and options.solver is None:  # each preset has its own
        job = dataclasses.replace(job, solver="")
    return FolderRequest(
        Path(options.input),
        Path(options.output),
        job,
        presets,
        tuple(dict.fromkeys(part for part in options.formats.lower().split(",") if part)),
        parse_window(options.window),
        options.watch,
        options.settle,
        options.retry_failed,
    )


def _follow(runner: FolderRunner, quiet: bool) -> None:
    """A bar that moves with every iteration; away from a terminal, a line for every input."""
    with progress_bar(quiet) as bar:
        task = bar.add_task("inputs", total=None, note="")

        def progress(row: Row, share: float) -> None:
            done = len(runner.rows) - len(runner.queue) - 1 + share
            bar.update(task, total=len(runner.rows), completed=done, note=row.name)

        def ended(row: Row) -> None:
            if bar.disable and not quiet:
                print(shown(_line(row, runner)), file=sys.stderr)

        runner.progress, runner.ended = progress, ended
        runner.run()


def _line(row: Row, runner: FolderRunner) -> str:
    words = f"{row.name}: {row.status}"
    if row.error:
        words += f": {row.error}"
    left = runner.pace(1.0)[1]
    return words + (f"; {timedelta(seconds=round(left))} left" if left and left >= 1 else "")


def _summary(runner: FolderRunner) -> None:
    counts = {state: runner.table.count(state) for state in (DONE, FAILED, LEFT_OUT, STOPPED)}
    print(", ".join(f"{count} {state}" for state, count in counts.items() if count) or "nothing")
    print(f"  {shown(runner.asked.results / HTML_NAME)}")
