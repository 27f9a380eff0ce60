"""A folder of inputs by the engine's own parts.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

from pathlib import Path

from app.background import STEP, TABLE, Ended, Step
from app.forms.labels import on_screen
from app.runs.mailbox import Mailbox
from app.tools.folder.model import OWN_LABELS, SIGNS, STATUS_COLUMN, FolderAsk, FolderTable
from engine.spec.control import RunControl
from engine.spec.job import Job
from engine.workflows.folder.request import SETTLE_SECONDS, FolderRequest
from engine.workflows.folder.runner import FolderRunner
from engine.workflows.folder.table import DONE, FAILED, HEADINGS, LEFT_OUT, WORDED, Row, cells

WATCHING = "Watching the folder …"


def run_folder(asked: FolderAsk, control: RunControl, mailbox: Mailbox) -> Ended:
    """As ``dualscope batch`` does it: what an earlier start has done is kept."""
    runner = FolderRunner(_request(asked), control)

    def progress(row: Row, share: float) -> None:
        fraction, seconds = runner.pace(share)
        mailbox.put_frame(STEP, Step(row.name, fraction, seconds))

    def kept() -> None:
        mailbox.put_frame(TABLE, table_of(runner))

    def idle() -> None:
        words = WATCHING if asked.watch else "Looking again …"
        mailbox.put_frame(STEP, Step(words, float(bool(runner.rows))))
        kept()

    runner.progress, runner.kept, runner.idle = progress, kept, idle
    runner.run()
    kept()
    ended = control.cancelled and not asked.watch
    words = "" if ended else summary(runner.rows)
    return Ended("cancelled" if ended else "done", runner.asked.results, sentence=words)


def table_of(runner: FolderRunner) -> FolderTable:
    results, rows = runner.asked.results, []
    for row in runner.rows:
        line = list(cells(row))
        line[STATUS_COLUMN] = f"{SIGNS[row.status]} {row.status}"
        line[-1] = on_screen(row.error, OWN_LABELS)
        rows.append(tuple(line))
    return FolderTable(
        tuple(HEADINGS.values()),
        tuple(rows),
        frozenset(number for number, key in enumerate(HEADINGS) if key in WORDED),
        tuple(str(results / row.folder) if row.outputs else "" for row in runner.rows),
    )


def summary(rows: list[Row]) -> str:
    counts = {state: sum(row.status == state for row in rows) for state in (DONE, FAILED, LEFT_OUT)}
    words = [f"{count} {state}" for state, count in counts.items() if count]
    return f"Done: {', '.join(words) or 'there was nothing to do'}."


def _request(asked: FolderAsk) -> FolderRequest:
    return FolderRequest(
        Path(asked.inputs).absolute(),
        Path(asked.folder).absolute(),
        Job(input="", **asked.job),
        (asked.preset,) if asked.preset else (),
        asked.formats,
        watch=asked.watch,
        settle_seconds=SETTLE_SECONDS,
        retry_failed=asked.retry_failed,
    )
