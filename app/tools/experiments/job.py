"""An experiment from its request to its figures, by the engine's own parts.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

from pathlib import Path

from app.background import STEP, TABLE, Begun, Ended, JobRequest, Mailbox, Step, Table
from app.forms.labels import on_screen
from engine.spec.control import RunControl
from engine.spec.errors import DescriptionNeeded, RequestError
from engine.workflows.experiments.definition import Experiment
from engine.workflows.experiments.plan import Case
from engine.workflows.experiments.runner import Pace, open_runner
from engine.workflows.experiments.store import Row
from engine.workflows.experiments.summary import cell, columns, summarise

OWN_LABELS = {"output": "Folder", "overwrite": "Begin again"}
DESCRIBE = "Open it in the main window first, and take the open data as inputs."
WORDED = ("scan", "method", "failed")


def run_experiment(asked: JobRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """As ``dualscope experiment`` does it: what an earlier start has done is kept."""
    try:
        runner = open_runner(asked.request, Path(asked.folder), asked.overwrite)
    except RequestError as error:
        more = f" {DESCRIBE}" if isinstance(error, DescriptionNeeded) else ""
        raise RequestError(on_screen(error, OWN_LABELS) + more) from error
    experiment, cases, pace = runner.request.experiment, runner.plan.cases, Pace(runner)

    def tell() -> None:
        mailbox.put_frame(TABLE, table_of(experiment, runner.store.rows))

    def progress(case: Case, share: float, word: str) -> None:
        done = pace.done(case, share)
        words = f"{case.label}: {word}" if word else case.label
        mailbox.put_frame(STEP, Step(words, pace.fraction(done), pace.seconds_left(done)))

    tell()
    runner.kept = tell
    done = len(cases) - len(runner.remaining())
    mailbox.post(Begun(len(cases), done, tuple(map(on_screen, runner.plan.left_out))))
    if not control.cancelled:
        runner.run(control, progress)
    _, (_, *figures) = runner.conclude()
    return Ended("cancelled" if control.cancelled else "done", runner.folder, tuple(figures))


def table_of(experiment: Experiment, cases: dict[str, list[Row]]) -> Table:
    rows = summarise(experiment, cases)
    shown = columns(experiment, rows)
    return Table(
        tuple(column.heading for column in shown),
        tuple(tuple(cell(column, row) for column in shown) for row in rows),
        frozenset(number for number, column in enumerate(shown) if column.key in WORDED),
    )
