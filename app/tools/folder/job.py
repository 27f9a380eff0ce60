"""A folder of inputs by the engine's own parts.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

from typing import Final

from app.background import STEP, TABLE, Ended, Mailbox, Step, Table
from app.forms.labels import on_screen
from engine.spec.control import RunControl
from engine.workflows.folder.request import FolderRequest
from engine.workflows.folder.runner import FolderRunner
from engine.workflows.folder.table import DONE, FAILED, HEADINGS, LEFT_OUT, WORDED, Row, cells

WATCHING = "Watching the folder …"
# Words and a sign for each state of an input, so that neither colour nor sign stands alone.
SIGNS: Final = {
    "waiting": "◌",
    "running": "▶",
    "done": "✔",
    "failed": "✖",
    "stopped": "■",
    "left out": "–",
}
STATUS_COLUMN: Final = 1
OWN_LABELS: Final = {"unit": "Arrays in"}  # of settings that have another field elsewhere


def run_folder(asked: FolderRequest, control: RunControl, mailbox: Mailbox) -> Ended:
    """As ``dualscope batch`` does it: what an earlier start has done is kept."""
    runner = FolderRunner(asked, control)

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


def table_of(runner: FolderRunner) -> Table:
    results, rows = runner.asked.results, []
    for row in runner.rows:
        line = list(cells(row))
        line[STATUS_COLUMN] = f"{SIGNS[row.status]} {row.status}"
        line[-1] = on_screen(row.error, OWN_LABELS)
        rows.append(tuple(line))
    return Table(
        tuple(HEADINGS.values()),
        tuple(rows),
        frozenset(number for number, key in enumerate(HEADINGS) if key in WORDED),
        tuple(str(results / row.folder) if row.outputs else "" for row in runner.rows),
    )


def summary(rows: list[Row]) -> str:
    counts = {state: sum(row.status == state for row in rows) for state in (DONE, FAILED, LEFT_OUT)}
    words = [f"{count} {state}" for state, count in counts.items() if count]
    return f"Done: {', '.join(words) or 'there was nothing to do'}."
