"""The tables at the end of a soak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from soak.probe import METHOD, MOST_GROWTH, Leak
from soak.tally import Row, Tally

HEADINGS = ("times run", "faults", "told", "not told", "lost", "unexpected")
SHOWN_TROUBLES = 20


def show(tally: Tally, found: Mapping[str, Sequence[Leak]]) -> None:
    console = Console(width=110)
    console.print(_tasks(tally))
    console.print(_leaks(found))
    console.print(f"{METHOD} Memory may grow by {MOST_GROWTH:g} %.", highlight=False)
    for words in tally.troubles[:SHOWN_TROUBLES]:
        console.print(f"- {escape(words)}", highlight=False)
    if (more := len(tally.troubles) - SHOWN_TROUBLES) > 0:
        console.print(f"- and {more} more, in soak.json")


def _tasks(tally: Tally) -> Table:
    table = Table(title="Tasks")
    table.add_column("task")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for name in sorted(tally.rows):
        table.add_row(name, *_cells(tally.rows[name]))
    table.add_section()
    table.add_row("all", *_cells(tally.total()))
    return table


def _cells(row: Row) -> list[str]:
    return [str(value) for value in asdict(row).values()]


def _leaks(found: Mapping[str, Sequence[Leak]]) -> Table:
    table = Table(title="Leaks")
    for heading in ("process", "what", "start", "end", "growth", ""):
        table.add_column(heading, justify="left" if heading in ("process", "what") else "right")
    for process, rows in found.items():
        if not rows:
            table.add_row(process, "too short to say")
        for leak in rows:
            growth = "" if leak.growth is None else f"{leak.growth:+.1f} %"
            verdict = "LEAK" if leak.leaked else "steady"
            table.add_row(
                process, leak.name, f"{leak.start:.5g}", f"{leak.end:.5g}", growth, verdict
            )
    return table
