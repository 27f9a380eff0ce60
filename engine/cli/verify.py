"""``dualscope verify RUN.json``: run a record again and say whether the bits match."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.cli.options import progress_bar
from engine.cli.reconstruct import cancel_on_signals
from engine.physics.device import DEVICES
from engine.solvers.iteration import Iteration
from engine.spec.control import RunControl
from engine.workflows.trust.verify import verify


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RUN.json", help="The record of a run.")
    parser.add_argument("--input", metavar="INPUT", help="The data of a de-identified record.")
    parser.add_argument(
        "--device", metavar="|".join(DEVICES), help="Default: the kind of the record, if here."
    )
    parser.add_argument("--quiet", action="store_true", help="No progress.")


def run(options: argparse.Namespace) -> int:
    control = RunControl()
    with cancel_on_signals(control), progress_bar(options.quiet) as bar:
        task = bar.add_task("again", total=None, note="")

        def tick(iteration: Iteration) -> None:
            bar.update(task, total=iteration.K, completed=iteration.k)

        found = verify(Path(options.record), control, options.input, options.device, tick)
    if found is None:
        raise KeyboardInterrupt
    for sentence in found.sentences:
        print(sentence)
    return 0 if found.passed else 1
